// Begins.

import { render } from 'preact';

import { begin } from './actions';
import { listenToBack } from './backButton';
import { listenToLeaving } from './drafts';
import { listenToKeys } from './keys';
import './style/base.css';
import './style/frame.css';
import './style/sessions.css';
import './style/conversation.css';
import './style/markdown.css';
import './style/diff.css';
import './style/composer.css';
import './style/question.css';
import './style/menu.css';
import './style/panel.css';
import './style/narrow.css';
import { App } from './ui/App';

// The token has done its work, and need not be in anybody's history.
if (new URLSearchParams(location.search).has('token')) history.replaceState(null, '', `${location.pathname}${location.hash}`);

const root = document.getElementById('app');
if (root) {
  render(<App />, root);
  listenToKeys();
  listenToBack();
  listenToLeaving();
  void begin();
}
