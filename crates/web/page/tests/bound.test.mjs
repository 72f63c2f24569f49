// Undo and redo take back what they say, whatever others do meanwhile, and whoever loads the page again finds them.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after } from 'node:test';
import { test } from './case.mjs';
import { apply, choose, closeBrowser, menu, RETAKE, say, Scene } from './scene.mjs';
import { play, prompted, replied } from './stage.mjs';

after(closeBrowser);
const config = '[permissions]\nallow = ["edits", "bash"]\n';
const edit = (from, to) => ({ calls: [['edit_file', { path: 'a.txt', old: from, new: to }]] });
const ok = { says: 'Done.' };
const prompts = (page) => page.locator('.e-prompt .said').allInnerTexts();
const bar = (page, text = 'Undo') => page.locator('.notice button', { hasText: text });
const retake = (scene, page, ...args) => execFileSync(RETAKE, [...args, '--session', page.url().split('/').at(-1), '--yes'], { cwd: scene.workspace, env: scene.env });

async function two(t, more = []) {
  const scene = await Scene.start(t, { files: { 'a.txt': 'zero\n' }, answers: [edit('zero', 'one'), ok, edit('one', 'two'), ok, ...more], config });
  const page = await scene.page();
  for (const text of ['do one', 'do two']) await say(page, text);
  return { scene, page };
}

/** A second turn that was stopped after it had changed a file. */
async function stopped(t) {
  const answers = [edit('zero', 'one'), ok, edit('one', 'two'), { says: 'x', pause_ms: 20_000 }, ok];
  const scene = await Scene.start(t, { files: { 'a.txt': 'zero\n' }, answers, config });
  const page = await scene.page();
  await say(page, 'do one');
  await page.locator('#composer').fill('do two');
  await page.locator('#composer').press('Enter');
  await page.locator('.e-tool_result').nth(1).waitFor();
  await page.locator('.stop').click();
  await page.locator('.notice', { hasText: 'Stopped' }).waitFor();
  return { scene, page };
}

test('the bar of a turn that was stopped takes back that turn', async (t) => {
  const { scene, page } = await stopped(t);
  await bar(page).click();
  await page.locator('[aria-label="Prompt 2"]').waitFor({ state: 'detached' });
  assert.deepEqual([scene.read('a.txt'), await prompts(page)], ['one\n', ['do one']]);
});

test('the bar of a turn goes when the turn has left, and takes nothing else back', async (t) => {
  const { scene, page } = await stopped(t);
  retake(scene, page, 'undo');
  await page.locator('[aria-label="Prompt 2"]').waitFor({ state: 'detached' });
  await bar(page).waitFor({ state: 'detached' });
  assert.deepEqual([scene.read('a.txt'), await prompts(page)], ['one\n', ['do one']]);
});

test('the bar of a turn goes when another one begins', async (t) => {
  const { page } = await stopped(t);
  const other = await page.context().newPage();
  await other.goto(page.url());
  await other.locator('[aria-label="Prompt 2"]').waitFor();
  await other.locator('#composer').fill('go on');
  await other.locator('#composer').press('Enter');
  await page.locator('[aria-label="Prompt 3"]').waitFor();
  await bar(page).waitFor({ state: 'detached' });
});

test('redo repeats what its bar says, or nothing', async (t) => {
  const { scene, page } = await two(t);
  await page.locator('#composer').fill('/undo');
  await page.locator('#composer').press('Enter');
  await page.locator('.notice', { hasText: 'Undid turn “do two”' }).waitFor();
  const redo = await bar(page, 'Redo').elementHandle();
  // Somebody takes back the first turn too, and the tab is told of it after the click.
  await page.context().setOffline(true).catch(() => {});
  retake(scene, page, 'undo');
  await page.context().setOffline(false);
  await redo.click().catch(() => {});
  await page.waitForTimeout(1_000);
  assert.equal(scene.read('a.txt'), 'zero\n');
  await page.locator('[aria-label="Prompt 1"]').waitFor({ state: 'detached' });
  // What the newest redo is about is at hand all the same.
  await page.locator('.top .redo[title*="do one"]').click();
  await page.locator('[aria-label="Prompt 1"]').waitFor();
  assert.equal(scene.read('a.txt'), 'one\n');
});

test('a turn that was undone at once takes no bar away when its end is told', async (t) => {
  const [one, two] = [[prompted(1, 'do one'), replied(2, 'One.')], [prompted(3, 'do two'), replied(4, 'Two.')]];
  const document = { operation: 'bb', what: 'turn do two', files: [], conflicts: [], conversation_moved: true };
  const replies = { apply: { type: 'change', document }, operations: { type: 'operations', undo: null, redo: { operation: 'bb', kind: 'turn', what: 'do two', at: 0 } } };
  const { page, tell } = await play(t, { view: { entries: [...one, ...two], state: 'paused' }, replies });
  await page.locator('#composer').fill('/undo');
  await page.locator('#composer').press('Enter');
  await bar(page, 'Redo').waitFor();
  tell({ type: 'head_moved', operation: 'bb', keep: one[1].id, added: [] });
  tell({ type: 'turn_ended', session: 'aaaa', prompt: two[0].id, reason: 'interrupted', text: '', usage: {}, operation: 'aa' });
  tell({ type: 'warning', text: 'all is told' });
  await page.locator('.notice', { hasText: 'all is told' }).waitFor();
  assert.equal(await bar(page, 'Redo').count(), 1);
  assert.equal(await bar(page, 'Undo').count(), 0);
});

test('a reload tells of nothing that this tab did, and brings the bar back', async (t) => {
  const { scene, page } = await two(t);
  await choose(page, 2, 'Code and conversation');
  await apply(page);
  await bar(page).waitFor();
  await page.reload();
  await page.locator('[aria-label="Prompt 1"]').waitFor();
  await page.locator('.notice', { hasText: 'Rewound' }).waitFor();
  await page.waitForTimeout(600);
  assert.doesNotMatch(await page.locator('.notices').innerText(), /Another client|waits/);
  assert.equal(await page.locator('#composer').inputValue(), 'do two');
  await bar(page).click();
  await page.locator('[aria-label="Prompt 2"]').waitFor();
  assert.equal(scene.read('a.txt'), 'two\n');
});

test('another session and back tells of nothing either', async (t) => {
  const { page } = await two(t);
  await choose(page, 2, 'Code and conversation');
  await apply(page);
  const address = page.url();
  await page.locator('.sidebar .new button').click();
  await page.waitForFunction((old) => location.href !== old, address);
  await page.locator('.welcome').waitFor();
  await page.goto(address);
  await page.locator('[aria-label="Prompt 1"]').waitFor();
  await page.waitForTimeout(600);
  assert.doesNotMatch(await page.locator('.notices').innerText(), /Another client/);
});

test('undo and redo are always at hand, and say what they are about', async (t) => {
  const { scene, page } = await two(t);
  const [undo, redo] = [page.locator('.top .undo'), page.locator('.top .redo')];
  await page.waitForFunction(() => document.querySelector('.top .undo')?.title.includes('do two'));
  assert.equal(await redo.getAttribute('aria-disabled'), 'true');
  assert.match(await redo.getAttribute('title'), /nothing to redo/i);
  // A conflict, and second thoughts.
  scene.write('a.txt', 'mine\n');
  await undo.click();
  await page.locator('.conflict').waitFor();
  await page.locator('.plan button', { hasText: 'Cancel' }).click();
  await page.locator('.plan').waitFor({ state: 'detached' });
  scene.write('a.txt', 'two\n');
  await undo.click();
  await page.locator('[aria-label="Prompt 2"]').waitFor({ state: 'detached' });
  assert.equal(scene.read('a.txt'), 'one\n');
  await page.waitForFunction(() => document.querySelector('.top .redo')?.title.includes('do two'));
  await redo.click();
  await page.locator('[aria-label="Prompt 2"]').waitFor();
});

test('a double click on the control opens the menu and does nothing else', async (t) => {
  for (const [height, delay] of [[800, 30], [800, 200], [420, 60], [420, 300]]) {
    const { scene, page } = await two(t);
    await page.setViewportSize({ width: 1000, height });
    const button = page.locator('[aria-label="Prompt 2"] .rewind');
    await button.hover();
    const place = await button.boundingBox();
    const [x, y] = [place.x + place.width / 2, place.y + place.height / 2];
    // As far apart for the page, however busy the machine is.
    const now = Date.now();
    const clickAt = async (ms) => {
      await page.evaluate((at) => (Date.now = () => at), now + ms);
      await page.mouse.click(x, y);
    };
    await clickAt(0);
    await page.locator('.menu').waitFor();
    await clickAt(delay);
    await page.waitForTimeout(400);
    assert.equal(await page.locator('.plan, .e-summary, .summarise').count(), 0, `${height} ${delay}`);
    assert.deepEqual(await prompts(page), ['do one', 'do two']);
    assert.equal(scene.requests.split('\n').filter(Boolean).length > 0, true);
    const box = await page.locator('.menu').boundingBox();
    assert.ok(x < box.x || x > box.x + box.width || y < box.y || y > box.y + box.height, 'the menu covers its button');
    await page.close();
  }
});

test('one item of the menu is marked, by key or by mouse', async (t) => {
  const { page } = await two(t);
  await (await menu(page, 2)).locator('[role=menuitem]').nth(5).hover();
  await page.keyboard.press('ArrowDown');
  const marked = () => page.evaluate(() => {
    const plain = getComputedStyle(document.querySelector('.menu')).backgroundColor;
    return [...document.querySelectorAll('[role=menuitem]')].filter((item) => ![plain, 'rgba(0, 0, 0, 0)'].includes(getComputedStyle(item).backgroundColor)).map((item) => item.innerText.split('\n')[1]);
  });
  assert.equal((await marked()).length, 1);
});

test('a summary is asked for only when it is confirmed, with what it is to heed', async (t) => {
  const { scene, page } = await two(t, [{ says: 'Short.' }]);
  const before = scene.requests.length;
  await choose(page, 2, 'Summarise from here');
  const form = page.locator('.summarise');
  await form.waitFor();
  assert.match(await form.innerText(), /do two/);
  await page.waitForTimeout(300);
  assert.equal(scene.requests.length, before);
  await form.locator('textarea').fill('keep the numbers');
  await form.locator('button.primary').click();
  await page.locator('.e-summary').waitFor();
  assert.match(scene.requests.slice(before), /keep the numbers/);
});
