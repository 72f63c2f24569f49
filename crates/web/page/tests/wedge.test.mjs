// What goes on in one place does not stop another, and what is not answered is said.
import assert from 'node:assert/strict';
import { unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { after } from 'node:test';
import { test } from './case.mjs';
import { apply, choose, closeBrowser, ready, say, Scene } from './scene.mjs';

after(closeBrowser);
const config = '[permissions]\nallow = ["edits", "bash"]\n';
const write = (path, content) => ({ calls: [['write_file', { path, content }]] });

test('a file that only the user changed is restored as it was before', async (t) => {
  const scene = await Scene.start(t, { config, files: { 'mine.txt': 'mine\n', 'gone.txt': 'gone\n' }, answers: [write('a.txt', 'a\n'), { says: 'Done.' }] });
  const page = await scene.page();
  await say(page, 'one');
  scene.write('mine.txt', 'spoilt\n');
  unlinkSync(join(scene.workspace, 'gone.txt'));
  const compare = async () => {
    await page.locator('.top button', { hasText: 'Timeline' }).click();
    await page.locator('.tree-row .ab button', { hasText: 'compare' }).first().click();
    await page.locator('.compare button.primary').click();
  };
  for (const [name, text, does, done] of [['mine.txt', 'mine\n', 'Restore', 'restored'], ['gone.txt', 'gone\n', 'Recreate', 'recreated']]) {
    await compare();
    await page.locator('.with-button', { has: page.locator('.path', { hasText: name }) }).locator('.only-this').click();
    await page.locator('#side-title', { hasText: `${does} ${name} as it was before 1` }).waitFor();
    // The user's own text would be lost, so the page asks.
    if (name === 'mine.txt') await page.locator('.conflict label', { hasText: 'Overwrite' }).click();
    await apply(page);
    await page.locator('.notice', { hasText: `${name} ${done}` }).waitFor();
    assert.equal(scene.read(name), text);
  }
  // What is as it was is not offered to be restored.
  await compare();
  await page.locator('.side .only-this').waitFor();
  unlinkSync(join(scene.workspace, 'a.txt'));
  await page.locator('.side .only-this').click();
  await page.locator('.plan .summary-line', { hasText: 'Already as it was then' }).waitFor();
  assert.equal(await page.locator('.plan button.primary').getAttribute('aria-disabled'), 'true');
});

test('what is compared is what is restored', async (t) => {
  const edit = (at) => ({ calls: [['edit_file', { path: 'a.txt', old: `v${at}`, new: `v${at + 1}` }]] });
  const answers = [0, 1, 2].flatMap((at) => [edit(at), { says: 'Done.' }]);
  const scene = await Scene.start(t, { config, files: { 'a.txt': 'v0\n' }, answers });
  const page = await scene.page();
  for (const text of ['p one', 'p two', 'p three']) await say(page, text);
  await page.locator('.top button', { hasText: 'Timeline' }).click();
  const pick = (text, shown) => page.locator('.tree-row', { hasText: text }).locator('.ab button', { hasText: shown }).click();
  await pick('p one', 'compare');
  await page.locator('.compare button.primary').click();
  await page.locator('.side .dl', { hasText: 'v0' }).waitFor();
  await pick('p one', 'from');
  await pick('p three', 'compare');
  assert.equal(await page.locator('.side .only-this').count(), 0);
  await page.locator('.compare button.primary').click();
  await page.locator('.side .dl', { hasText: 'v2' }).waitFor();
  await page.locator('.side .only-this').click();
  await page.locator('#side-title', { hasText: 'as it was before 3' }).waitFor();
  await apply(page);
  assert.equal(scene.read('a.txt'), 'v2\n');
});

test('eight tabs that are seen: each says, hears and stops', async (t) => {
  const scene = await Scene.start(t, { answers: [{ says: 'First.' }, { says: 'slow', pause_ms: 30_000 }] });
  const page = await scene.page();
  const tabs = [page];
  while (tabs.length < 8) tabs.push(await scene.tab(page));
  for (const tab of tabs) await ready(tab);
  const last = tabs.at(-1);
  await say(last, 'one');
  for (const tab of tabs) await tab.locator('.e-reply', { hasText: 'First.' }).waitFor();
  await last.locator('#composer').fill('two');
  await last.keyboard.press('Enter');
  await last.locator('.stop').click();
  for (const tab of tabs) await tab.locator('.stop').waitFor({ state: 'detached' });
});

test('a tab that begins unseen lets go of its connection', async (t) => {
  const scene = await Scene.start(t);
  const page = await scene.page();
  await say(page, 'one');
  const other = await scene.page();
  await other.clock.install();
  await other.addInitScript(() => Object.defineProperty(document, 'hidden', { value: true, configurable: true }));
  await other.goto(page.url());
  await other.reload();
  await other.clock.runFor(1_000);
  await other.locator('[aria-label="Prompt 1"]').waitFor();
  await other.clock.runFor(15_000);
  await say(page, 'two');
  await other.clock.runFor(2_000);
  assert.equal(await other.locator('[aria-label="Prompt 2"]').count(), 0);
});

test('a stop that is not answered is said', async (t) => {
  const scene = await Scene.start(t, { answers: [{ says: 'slow', pause_ms: 20_000 }] });
  const page = await scene.page();
  let release;
  const held = new Promise((resolve) => (release = resolve));
  await page.route('**/commands', async (route) => {
    if (JSON.parse(route.request().postData()).command.type === 'interrupt') await held;
    await route.continue();
  });
  await page.locator('#composer').fill('one');
  await page.keyboard.press('Enter');
  await page.locator('.stop').click();
  const told = page.locator('.notice', { hasText: 'has not answered to Stop' });
  await told.waitFor();
  release();
  await told.waitFor({ state: 'detached' });
  await page.locator('.stop').waitFor({ state: 'detached' });
});

test('a summary in one session leaves the others alone', async (t) => {
  const scene = await Scene.start(t, { answers: [{ says: 'First.' }, { says: 'Second.' }, { says: 'A summary.' }] });
  const page = await scene.page();
  await say(page, 'one');
  const first = page.url();
  await page.locator('.new button').click();
  await page.waitForFunction((old) => location.href !== old, first);
  await say(page, 'two');
  const second = page.url();
  let release;
  const held = new Promise((resolve) => (release = resolve));
  await page.route('**/commands', async (route) => {
    if (JSON.parse(route.request().postData()).command.type === 'summarise') await held;
    await route.continue();
  });
  await page.locator('#composer').fill('/compact');
  await page.keyboard.press('Enter');
  await page.evaluate((to) => (location.href = to), first);
  await page.locator('.e-prompt', { hasText: 'one' }).waitFor();
  await choose(page, 1, 'Conversation only');
  await apply(page);
  await page.locator('.notice', { hasText: 'Rewound the conversation' }).waitFor();
  // In its own session it is named, and its plan can be closed.
  await page.evaluate((to) => (location.href = to), second);
  await page.locator('.e-prompt', { hasText: 'two' }).waitFor();
  await choose(page, 1, 'Conversation only');
  await page.locator('.plan .primary', { hasText: 'Summary in progress' }).waitFor();
  await page.keyboard.press('Escape');
  await page.locator('.plan').waitFor({ state: 'detached' });
  release();
  await page.locator('.notice', { hasText: 'Summarised' }).waitFor();
});

test('a prompt that begins with a question mark is text', async (t) => {
  const scene = await Scene.start(t, { config, answers: [write('a.txt', 'a\n'), { says: 'Done.' }] });
  const page = await scene.page();
  await say(page, 'one');
  await page.locator('#composer').focus();
  await page.keyboard.type('?u');
  assert.equal(await page.locator('#composer').inputValue(), '?u');
  assert.equal(await page.locator('.side').count(), 0);
});

test('the answer to a change leaves the focus where the user has put it meanwhile', async (t) => {
  const scene = await Scene.start(t, { config, answers: [write('a.txt', 'a\n'), { says: 'Done.' }] });
  const page = await scene.page();
  await say(page, 'one');
  let release;
  const held = new Promise((resolve) => (release = resolve));
  await page.route('**/commands', async (route) => {
    if (JSON.parse(route.request().postData()).command.type !== 'apply') return route.continue();
    const response = await route.fetch();
    await held;
    return route.fulfill({ response });
  });
  await page.locator('#composer').fill('/undo');
  await page.keyboard.press('Enter');
  // The events of the change have come, its answer has not.
  await page.locator('.e-prompt').waitFor({ state: 'detached' });
  await page.keyboard.press('Control+A');
  await page.keyboard.press('Delete');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  const search = page.locator('.timeline input[type=search]');
  await search.waitFor();
  await page.locator('.tree-row').first().waitFor();
  release();
  await page.locator('.notice', { hasText: 'Undid' }).waitFor();
  assert.equal(await search.evaluate((one) => one === document.activeElement), true);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.locator('[role=menu]').waitFor();
});
