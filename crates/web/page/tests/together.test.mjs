// Several clients on one session, and a server that goes away.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after } from 'node:test';
import { test } from './case.mjs';
import { apply, choose, closeBrowser, ready, RETAKE, say, Scene } from './scene.mjs';

after(closeBrowser);
const config = '[permissions]\nallow = ["edits", "bash"]\n';
const edit = (from, to) => ({ calls: [['edit_file', { path: 'a.txt', old: from, new: to }]] });
const answers = [edit('zero', 'one'), { says: 'First.' }, edit('one', 'two'), { says: 'Second.' }, { says: 'Third.' }];
const start = (t) => Scene.start(t, { files: { 'a.txt': 'zero\n' }, answers, config });
const shown = (page) => page.locator('.inner').innerText();
/** What the page asks for afterwards has come, too: of each turn, and of the call in it. */
const changes = (page, count) => Promise.all(['.turn-changed', '.e-tool_result .counts'].map((one) => page.locator(one).nth(count - 1).waitFor()));

test('two tabs are in step through turns, rewinds, undos', async (t) => {
  const scene = await start(t);
  const one = await scene.page();
  await say(one, 'do one');
  const two = await scene.tab(one);
  await two.locator('[aria-label="Prompt 1"]').waitFor();
  await say(one, 'do two');
  await two.locator('.e-reply', { hasText: 'Second.' }).waitFor();
  await ready(two);
  await one.bringToFront();
  await choose(one, 2, 'Code and conversation');
  await apply(one);
  await two.locator('[aria-label="Prompt 2"]').waitFor({ state: 'detached' });
  await two.locator('.notice', { hasText: 'Another client' }).first().waitFor();
  // Only the tab that asked has the prompt in its composer.
  assert.equal(await one.locator('#composer').inputValue(), 'do two');
  assert.equal(await two.locator('#composer').inputValue(), '');
  await one.locator('.notice button.primary', { hasText: 'Undo' }).click();
  await two.locator('[aria-label="Prompt 2"]').waitFor();
  await one.locator('[aria-label="Prompt 2"]').waitFor();
  await Promise.all([changes(one, 2), changes(two, 2)]);
  assert.equal(await shown(one), await shown(two));
});

test('a plan for a prompt that another tab has rewound offers no rewind', async (t) => {
  const scene = await start(t);
  const one = await scene.page();
  await say(one, 'do one');
  const two = await scene.tab(one);
  await two.locator('[aria-label="Prompt 1"]').waitFor();
  await ready(two);
  await choose(two, 1, 'Code and conversation');
  await two.locator('.plan .actions button.primary[aria-disabled=false]').waitFor();
  await one.bringToFront();
  await choose(one, 1, 'Code and conversation');
  await apply(one);
  await two.locator('.plan [role=alert]', { hasText: 'not in the conversation any more' }).waitFor();
  assert.equal(await two.locator('.plan button', { hasText: 'Rewind' }).count(), 0);
  await two.locator('.plan button', { hasText: 'Close' }).click();
  await two.locator('.plan').waitFor({ state: 'detached' });
});

test('a question is answered in one tab and gone in the other', async (t) => {
  const scene = await Scene.start(t, { files: { 'a.txt': 'zero\n' }, answers });
  const one = await scene.page();
  await one.locator('#composer').fill('do one');
  await one.locator('#composer').press('Enter');
  await one.locator('[role=alertdialog]').waitFor();
  const two = await scene.tab(one);
  await two.locator('[role=alertdialog]').waitFor();
  await two.locator('.answers button.primary').click();
  await one.locator('[role=alertdialog]').waitFor({ state: 'detached' });
  await ready(one);
  assert.equal(scene.read('a.txt'), 'one\n');
});

test('what the command line does to the session is seen at once', async (t) => {
  const scene = await start(t);
  const page = await scene.page();
  await say(page, 'do one');
  await say(page, 'do two');
  const id = page.url().split('/').at(-1);
  const options = { cwd: scene.workspace, env: scene.env };
  // Once the page is ready, no command finds the turn still running.
  execFileSync(RETAKE, ['undo', '--session', id, '--yes'], options);
  await page.locator('[aria-label="Prompt 2"]').waitFor({ state: 'detached' });
  assert.equal(scene.read('a.txt'), 'one\n');
  execFileSync(RETAKE, ['redo', '--session', id, '--yes'], options);
  await page.locator('[aria-label="Prompt 2"]').waitFor();
});

test('the page waits for a server that was killed, and goes on when it is there again', async (t) => {
  const scene = await start(t);
  const page = await scene.page();
  await say(page, 'do one');
  await changes(page, 1);
  const before = await shown(page);
  await scene.kill();
  await page.locator('.link', { hasText: 'The server is gone' }).waitFor();
  await page.locator('.status .state', { hasText: 'offline' }).waitFor();
  assert.equal(await shown(page), before);
  await page.locator('#composer').fill('into the void');
  await page.locator('#composer').press('Enter');
  await page.locator('.notice', { hasText: 'does not answer' }).waitFor();
  // What could not be said is not lost.
  assert.equal(await page.locator('#composer').inputValue(), 'into the void');
  await scene.serve(scene.port);
  await page.locator('.link').waitFor({ state: 'detached', timeout: 20_000 });
  assert.equal(await shown(page), before);
  await say(page, 'do two');
  await page.locator('.e-reply', { hasText: 'Second.' }).waitFor();
});

test('a tab that is cut off misses nothing', async (t) => {
  const scene = await start(t);
  const one = await scene.page();
  await say(one, 'do one');
  const two = await scene.tab(one);
  await two.locator('[aria-label="Prompt 1"]').waitFor();
  await two.close();
  const other = await scene.page();
  await other.goto(one.url());
  await other.locator('[aria-label="Prompt 1"]').waitFor();
  await other.context().setOffline(true);
  await say(one, 'do two');
  await other.context().setOffline(false);
  await other.locator('.e-reply', { hasText: 'Second.' }).waitFor({ timeout: 20_000 });
  await Promise.all([changes(one, 2), changes(other, 2)]);
  assert.equal(await shown(other), await shown(one));
});

test('who has no cookie is told how to come in', async (t) => {
  const scene = await start(t);
  await (await scene.page()).close();
  const stranger = await scene.page({ signIn: false });
  await stranger.goto(new URL('/', scene.url).href);
  assert.match(await stranger.locator('body').innerText(), /not signed in|not let in/i);
});

test('a terminal and a tab are in step', async (t) => {
  const scene = await start(t);
  const page = await scene.page();
  await say(page, 'do one');
  const id = page.url().split('/').at(-1);
  const terminal = scene.terminal('attach', id);
  await terminal.shows('First.');
  await say(page, 'do two');
  await terminal.shows('Second.');
  await terminal.shows('● ready');
  terminal.type('/undo');
  await terminal.shows('> /undo');
  terminal.press('Enter');
  await page.locator('[aria-label="Prompt 2"]').waitFor({ state: 'detached' });
  assert.equal(scene.read('a.txt'), 'one\n');
  await page.keyboard.press('Escape');
  await page.locator('#composer').fill('/redo');
  await page.locator('#composer').press('Enter');
  await page.locator('[aria-label="Prompt 2"]').waitFor();
  assert.equal(scene.read('a.txt'), 'two\n');
});

test('what is typed in one tab and left takes nothing from what waits, and what is deleted stays deleted', async (t) => {
  const scene = await start(t);
  const one = await scene.page();
  await say(one, 'do one');
  const two = await scene.tab(one);
  await two.locator('[aria-label="Prompt 1"]').waitFor();
  const url = one.url();
  const typed = (page, text) => page.waitForFunction((wanted) => document.querySelector('#composer')?.value === wanted, text);
  await one.locator('#composer').fill('older');
  await one.goto('about:blank');
  // Nobody went back.
  await two.locator('.notice', { hasText: 'What somebody has typed elsewhere waits' }).waitFor();
  assert.equal(await two.locator('.notice', { hasText: 'went back' }).count(), 0);
  await two.locator('#composer').fill('newer');
  await two.reload();
  await two.locator('[aria-label="Prompt 1"]').waitFor();
  await typed(two, 'newer');
  await two.goto('about:blank');
  const three = await scene.tab(two);
  await three.goto(url);
  await typed(three, 'older\n\nnewer');
  await three.locator('#composer').fill('');
  await three.goto('about:blank');
  const four = await scene.tab(three);
  await four.goto(url);
  await four.locator('[aria-label="Prompt 1"]').waitFor();
  await ready(four);
  assert.equal(await four.locator('#composer').inputValue(), '');
  // What waits is loaded beside what is typed.
  const five = await scene.tab(four);
  await five.locator('[aria-label="Prompt 1"]').waitFor();
  await five.locator('#composer').fill('again');
  await five.goto('about:blank');
  await four.bringToFront();
  await four.locator('.notice', { hasText: 'typed elsewhere' }).waitFor();
  await four.locator('#composer').fill('mine');
  await four.locator('.notice button', { hasText: 'Load it' }).click();
  await typed(four, 'again\n\nmine');
});
