// Answers and events come over two connections, and keys between two frames: in whatever order they come, the page loses nothing and shows
// nothing of a change before all of it.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { test } from './case.mjs';
import { choose, closeBrowser, say, Scene } from './scene.mjs';
import { play, prompted, replied } from './stage.mjs';

after(closeBrowser);
const TALK = [prompted(1, 'first'), replied(2, 'Yes.'), prompted(3, 'second'), replied(4, 'Well.')];
const WENT = { type: 'head_moved', operation: 'o1', keep: TALK[1].id, added: [] };
const SECOND = [{ type: 'text', text: 'second' }];
const plan = { version: 1, what: 'rewind', scope: 'both', operation: null, fingerprint: 'f', files: [], conflicts: [], blocked: [], kept: [], warnings: [], branch: null, conversation: { leaves: [{ id: TALK[2].id, text: 'second' }], returns: [] } };
const prompts = (page) => page.locator('.e-prompt .said').allInnerTexts();
/** The answer to a command of this type has come, and the page has had its turn. */
const answered = async (page, type, act) => {
  const [response] = await Promise.all([page.waitForResponse((one) => one.request().postDataJSON()?.command?.type === type), act()]);
  await response.finished();
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 50)));
};
/** No frame comes in the page, nor what stands in for one. */
const withoutFrames = (page) =>
  page.evaluate(() => {
    const later = window.setTimeout;
    window.requestAnimationFrame = () => 0;
    window.setTimeout = (run, ms, ...rest) => (ms >= 10 ? 0 : later(run, ms, ...rest));
  });

test('a change is reported when the conversation shows it, however late its events come', async (t) => {
  const change = { type: 'change', document: { ...plan, operation: 'o1', conversation_moved: true } };
  const replies = { plan: { type: 'change', document: plan }, apply: change, operations: { type: 'operations', undo: { operation: 'o1', kind: 'rewind', what: '', at: 0 }, redo: null } };
  const { page, tell, ids } = await play(t, { view: { entries: TALK }, replies, seqs: { apply: 2 } });
  await choose(page, 2, 'Code and conversation');
  await answered(page, 'apply', () => page.locator('.plan .actions button.primary[aria-disabled=false]').click());
  assert.deepEqual([await page.locator('.plan').count(), await page.locator('.notice').count()], [1, 0]);
  tell({ ...WENT, request: ids.apply });
  tell({ type: 'draft_changed', parts: SECOND, request: ids.apply });
  await page.locator('.plan').waitFor({ state: 'detached' });
  assert.deepEqual([await prompts(page), await page.locator('#composer').inputValue()], [['first'], 'second']);
  assert.match(await page.locator('.notice').innerText(), /Rewound/);
});

test('an answer is taken as it is where no events can come', async (t) => {
  const { page, cut } = await play(t, { view: { entries: TALK }, replies: { operations: { type: 'operations', undo: null, redo: null } }, seqs: { label: 9 } });
  await choose(page, 2, 'Label');
  await page.locator('.label-form input').fill('good');
  await answered(page, 'label', () => page.keyboard.press('Enter'));
  assert.equal(await page.locator('.notice').count(), 0);
  cut();
  await page.locator('.notice', { hasText: 'Labelled' }).waitFor();
});

test('a prompt is shown as queued although its answer comes before the event', async (t) => {
  const { page, tell } = await play(t, { view: { entries: TALK, state: 'running' }, replies: { prompt: { type: 'held', count: 1, request: 'r' } }, seqs: { prompt: 1 } });
  await page.locator('#composer').fill('later');
  await answered(page, 'prompt', () => page.keyboard.press('Enter'));
  tell({ type: 'held', count: 1 });
  await page.locator('.held', { hasText: 'later' }).waitFor();
});

test('the composer shows nothing of a rewind before the conversation does', async (t) => {
  const { page, tell } = await play(t, { view: { entries: TALK } });
  await withoutFrames(page);
  tell(WENT);
  tell({ type: 'draft_changed', parts: SECOND });
  await page.locator('.notice button', { hasText: 'Load it' }).waitFor();
  assert.deepEqual(await prompts(page), ['first']);
});

test('keys that are pressed before the next frame are typed into the search that they follow', async (t) => {
  const { page } = await play(t, { view: { entries: TALK } });
  await withoutFrames(page);
  await page.locator('.top [aria-label="Find in the conversation"]').click();
  await page.keyboard.type('zebra');
  assert.equal(await page.locator('.find input').inputValue(), 'zebra');
  await page.keyboard.press('Escape');
  await page.locator('.find').waitFor({ state: 'detached' });
  await page.locator('[aria-label="Prompt 1"]').focus();
  await page.keyboard.type('sapple');
  assert.equal(await page.locator('#session-search').inputValue(), 'apple');
  await page.locator('[aria-label="Prompt 1"]').focus();
  await page.keyboard.type('tpear');
  assert.equal(await page.locator('.timeline input').inputValue(), 'pear');
});

test('a session that is picked while a new one is asked for stays in sight', async (t) => {
  const scene = await Scene.start(t);
  const page = await scene.page();
  await say(page, 'about apples');
  await page.locator('.sidebar .new button').click();
  await page.locator('.welcome').waitFor();
  let release;
  const held = new Promise((resolve) => (release = resolve));
  await page.route('**/api/sessions', async (route) => {
    await held;
    await route.continue();
  });
  const [asked] = await Promise.all([page.waitForRequest('**/api/sessions'), page.locator('.sidebar .new button').click()]);
  await page.locator('.sidebar li', { hasText: 'apples' }).locator('.pick').click();
  await page.locator('.e-prompt', { hasText: 'apples' }).waitFor();
  const picked = page.url();
  release();
  await (await asked.response()).finished();
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 50)));
  assert.equal(page.url(), picked);
  assert.deepEqual(await prompts(page), ['about apples']);
});

test('what a key would undo is what is newest in the session, not in the tab', async (t) => {
  const operation = (id, what) => ({ type: 'operations', undo: { operation: id, kind: 'turn', what, at: 0 }, redo: null });
  const replies = { plan: { type: 'change', document: plan }, operations: operation('o2', 'second') };
  const { page } = await play(t, { view: { entries: TALK }, replies });
  await page.locator('.top button', { hasText: 'Undo' }).waitFor();
  // Another client has undone the second turn, and no event has told so yet.
  replies.operations = operation('o1', 'first');
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press('u');
  await page.locator('#side-title', { hasText: 'Undo turn “first”' }).waitFor();
});
