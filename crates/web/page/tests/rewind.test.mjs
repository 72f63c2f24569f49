// Going back, in every way.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { test } from './case.mjs';
import { apply, choose, closeBrowser, frames, menu, ready, say, Scene } from './scene.mjs';

after(closeBrowser);
const config = '[permissions]\nallow = ["edits", "bash"]\n';
const edit = (from, to) => ({ calls: [['edit_file', { path: 'a.txt', old: from, new: to }]] });
const ok = { says: 'Done.' };
/** Three turns: each changes a file. */
const THREE = [edit('zero', 'one'), ok, edit('one', 'two'), ok, { calls: [['bash', { command: 'echo three > b.txt' }]] }, ok];

async function three(t, more = []) {
  const scene = await Scene.start(t, { files: { 'a.txt': 'zero\n', 'keep.txt': 'mine\n' }, answers: [...THREE, ...more], config });
  const page = await scene.page();
  for (const text of ['write one', 'write two', 'make b']) await say(page, text);
  return { scene, page };
}
const prompts = (page) => page.locator('.e-prompt .said').allInnerTexts();
const undoBar = (page, text = 'Undo') => page.locator('.notice button.primary', { hasText: text });

test('code and conversation go back, the prompt waits in the composer, and undo brings all again', async (t) => {
  const { scene, page } = await three(t);
  await choose(page, 2, 'Code and conversation');
  const plan = page.locator('.plan');
  await plan.locator('.summary-line', { hasText: 'restores' }).waitFor();
  const text = await plan.innerText();
  assert.match(text, /restores 1 file, deletes 1 · removes 2 prompts/);
  assert.match(text, /Undoes what these did to the files:[^]*bash: echo three/);
  assert.match(await plan.locator('.with-button', { hasText: 'b.txt' }).innerText(), /will be deleted/);
  assert.doesNotMatch(text, /Also undoes|Cannot be undone/);
  assert.match(text, /Removed from the conversation:\s+write two\s+make b/);
  await plan.locator('.dl.added', { hasText: 'one' }).waitFor();
  assert.equal(scene.read('a.txt'), 'two\n');
  await apply(page);
  assert.deepEqual(await prompts(page), ['write one']);
  assert.deepEqual([scene.read('a.txt'), scene.read('b.txt')], ['one\n', null]);
  assert.equal(await page.locator('#composer').inputValue(), 'write two');
  assert.match(await page.locator('.notice').innerText(), /Rewound files and conversation to before 2 “write two”: 1 file restored, 1 deleted/);
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'composer');
  await undoBar(page).click();
  await page.locator('[aria-label="Prompt 3"]').waitFor();
  assert.deepEqual([scene.read('a.txt'), scene.read('b.txt')], ['two\n', 'three\n']);
  assert.equal(await page.locator('#composer').inputValue(), '');
  await undoBar(page, 'Redo').click();
  await page.locator('[aria-label="Prompt 3"]').waitFor({ state: 'detached' });
  assert.equal(scene.read('b.txt'), null);
});

test('conversation only leaves the files', async (t) => {
  const { scene, page } = await three(t);
  await choose(page, 2, 'Conversation only');
  await page.locator('.summary-line', { hasText: 'removes 2 prompts · files stay as they are' }).waitFor();
  assert.equal(await page.locator('.plan .stays, .plan .warning').count(), 0);
  await apply(page);
  assert.deepEqual(await prompts(page), ['write one']);
  assert.deepEqual([scene.read('a.txt'), scene.read('b.txt')], ['two\n', 'three\n']);
});

test('code only leaves the conversation, and what is typed is kept', async (t) => {
  const { scene, page } = await three(t);
  await page.locator('#composer').fill('half a thought');
  await choose(page, 1, 'Code only');
  await apply(page);
  assert.deepEqual(await prompts(page), ['write one', 'write two', 'make b']);
  assert.deepEqual([scene.read('a.txt'), scene.read('b.txt'), scene.read('keep.txt')], ['zero\n', null, 'mine\n']);
  assert.equal(await page.locator('#composer').inputValue(), 'half a thought');
});

test('a composer that is not empty is kept, with a notice where the prompt is', async (t) => {
  const { scene, page } = await three(t);
  await page.locator('#composer').fill('my own words');
  await choose(page, 3, 'Code and conversation');
  await apply(page);
  assert.equal(await page.locator('#composer').inputValue(), 'my own words');
  await page.locator('.notices', { hasText: 'Your text is kept' }).waitFor();
  await page.locator('.notice button', { hasText: 'Load it' }).click();
  // It comes before them.
  assert.equal(await page.locator('#composer').inputValue(), 'make b\n\nmy own words');
});

test('a fork is a session of its own', async (t) => {
  const { scene, page } = await three(t);
  const before = page.url();
  await choose(page, 3, 'Fork from here');
  await page.waitForURL((url) => url.href !== before);
  await page.locator('[aria-label="Prompt 2"]').waitFor();
  assert.deepEqual(await prompts(page), ['write one', 'write two']);
  assert.equal(await page.locator('#composer').inputValue(), 'make b');
  await page.locator('.sidebar li', { hasText: 'write one' }).locator('.tag', { hasText: 'fork' }).waitFor();
  await page.locator('.notice', { hasText: 'You are in a fork of “write one”' }).waitFor();
  await page.locator('.fork-mark').waitFor();
  await page.locator('.notice button', { hasText: 'Back to it' }).click();
  await page.locator('[aria-label="Prompt 3"]').waitFor();
  assert.equal(page.url(), before);
  await page.goto(before);
  await page.locator('[aria-label="Prompt 3"]').waitFor();
});

test('a summary stands for what is before or after, and is undone', async (t) => {
  const { scene, page } = await three(t, [{ says: 'A short summary.' }, { says: 'Another summary.' }]);
  await choose(page, 3, 'Summarise up to here');
  await page.locator('.summarise button.primary').click();
  await page.locator('.e-summary').waitFor();
  // It stands where what it stands for ends, before the prompt that stays.
  const rows = await page.locator('.row').evaluateAll((all) => all.map((row) => row.getAttribute('aria-label')));
  assert.ok(rows.indexOf('Prompt 2') < rows.indexOf('Summary') && rows.indexOf('Summary') < rows.indexOf('Prompt 3'), String(rows));
  assert.equal(await page.locator('.e-prompt.unseen').count(), 2);
  await undoBar(page).click();
  await page.locator('.e-summary').waitFor({ state: 'detached' });
  await choose(page, 2, 'Summarise from here');
  await page.locator('.summarise button.primary').click();
  await page.locator('.e-summary').waitFor();
  assert.match(await page.locator('.notice').innerText(), /Summarised: the next request is \d+% shorter/);
  await page.locator('.e-summary summary').click();
  await page.locator('.e-summary', { hasText: 'Another summary.' }).waitFor();
});

test('a label is given, seen in the timeline, and the diff of a turn shown', async (t) => {
  const { scene, page } = await three(t);
  await (await menu(page, 2)).locator('[role=menuitem]', { hasText: 'Label' }).click();
  assert.equal(await page.locator('.menu-title').innerText(), 'Label the point before 2');
  assert.ok((await page.locator('.label-form input').boundingBox()).width > 200);
  await page.locator('.label-form input').fill('good point');
  await page.keyboard.press('Enter');
  await page.locator('.notice', { hasText: 'good point' }).waitFor();
  await page.locator('[aria-label="Prompt 2"] .label', { hasText: 'good point' }).waitFor();
  await choose(page, 2, 'Show diff');
  await page.locator('#side-title', { hasText: 'What turn 2 changed' }).waitFor();
  assert.deepEqual(await page.locator('.side .dl').allInnerTexts(), ['1\n−\none', '1\n+\ntwo']);
  await page.locator('.top button', { hasText: 'Timeline' }).click();
  await page.locator('.tree-row .label', { hasText: 'good point' }).waitFor();
});

/** After the session has written line 1, somebody changes line 9. */
async function conflicted(t, name) {
  const lines = (first, last) => [first, 2, 3, 4, 5, 6, 7, 8, last].join('\n') + '\n';
  const answers = [{ calls: [['edit_file', { path: 'c.txt', old: 'first', new: 'FIRST' }]] }, ok];
  const scene = await Scene.start(t, { files: { 'c.txt': lines('first', 'last') }, answers, config });
  const page = await scene.page();
  await say(page, 'shout');
  scene.write('c.txt', lines('FIRST', 'mine'));
  await choose(page, 1, 'Code only');
  await page.locator('.conflict').waitFor();
  const radio = page.locator('.conflict label', { hasText: name });
  if (name !== 'Keep') await radio.click();
  await page.locator('.conflict label.on', { hasText: name }).waitFor();
  return { scene, page, lines };
}

test('a conflict is kept, which is the first choice', async (t) => {
  const { scene, page, lines } = await conflicted(t, 'Keep');
  assert.match(await page.locator('.conflict').innerText(), /c\.txt [\s\S]*changed/);
  assert.match(await page.locator('.conflict').innerText(), /was also changed outside this session[\s\S]*Stays as it is\. This change is not made:/);
  // What Enter would do is not decided by where the focus happens to be, and the button says it.
  await page.waitForFunction(() => document.querySelector('.plan button.primary')?.getAttribute('aria-disabled') === 'false');
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('name')), await page.locator('.conflict input').first().getAttribute('name'));
  assert.equal(await page.locator('.plan button.primary').innerText(), 'Rewind, keeping 1 file as it is');
  await apply(page);
  await page.locator('.notice', { hasText: '1 file kept as it is' }).waitFor();
  assert.equal(scene.read('c.txt'), lines('FIRST', 'mine'));
});

test('a conflict is overwritten, and undone', async (t) => {
  const { scene, page, lines } = await conflicted(t, 'Overwrite');
  await apply(page);
  assert.equal(scene.read('c.txt'), lines('first', 'last'));
  await undoBar(page).click();
  await page.locator('.notice', { hasText: 'Undid' }).waitFor();
  assert.equal(scene.read('c.txt'), lines('FIRST', 'mine'));
});

test('a conflict is merged, as the preview shows', async (t) => {
  const { scene, page, lines } = await conflicted(t, 'Merge');
  await page.locator('.conflict', { hasText: 'the others are kept' }).waitFor();
  await page.waitForFunction(() => document.querySelectorAll('.conflict .dl.added').length === 1);
  assert.match(await page.locator('.conflict .dl.added').innerText(), /first/);
  await apply(page);
  assert.equal(scene.read('c.txt'), lines('first', 'mine'));
  await page.locator('.notice', { hasText: '1 file merged' }).waitFor();
});

test('files that change after the plan was shown are not overwritten', async (t) => {
  const { scene, page } = await three(t);
  await choose(page, 2, 'Code only');
  await page.waitForFunction(() => document.querySelector('.plan button.primary')?.getAttribute('aria-disabled') === 'false');
  scene.write('a.txt', 'somebody else\n');
  await page.locator('.plan button.primary').click();
  await page.locator('.conflict').waitFor();
  assert.equal(scene.read('a.txt'), 'somebody else\n');
});

test('while a turn runs nothing goes back, and the page says why', async (t) => {
  const { scene, page } = await three(t, [{ says: 'slow', pause_ms: 60_000 }]);
  await page.locator('#composer').fill('slow');
  await page.keyboard.press('Enter');
  await page.locator('.stop').waitFor();
  const items = await menu(page, 2);
  const both = items.locator('[role=menuitem]', { hasText: 'Code and conversation' });
  assert.match(await page.locator('.menu').innerText(), /A turn is running/);
  assert.equal(await both.getAttribute('aria-disabled'), 'true');
  await both.click({ force: true });
  assert.equal(await page.locator('.plan').count(), 0);
  await page.keyboard.press('Escape');
  await page.locator('.stop').click();
  await page.locator('.stop').waitFor({ state: 'detached' });
});

test('any two points are compared, and one file is brought back alone', async (t) => {
  const { scene, page } = await three(t);
  await page.locator('.top button', { hasText: 'Timeline' }).click();
  await page.locator('.tree-row').nth(2).waitFor();
  await page.locator('.tree-row', { hasText: 'write one' }).locator('.ab button', { hasText: 'compare' }).click();
  await page.locator('.tree-row', { hasText: 'make b' }).locator('.ab button', { hasText: 'to here' }).click();
  await page.locator('.compare button.primary').click();
  await page.locator('.side .file').waitFor();
  assert.deepEqual(await page.locator('.side .dl').allInnerTexts(), ['1\n−\nzero', '1\n+\ntwo']);
  await page.locator('.only-this').click();
  await page.locator('#side-title', { hasText: 'Restore a.txt' }).waitFor();
  await apply(page);
  assert.deepEqual([scene.read('a.txt'), scene.read('b.txt')], ['zero\n', 'three\n']);
});

test('what was left behind is in the tree, and one can go back to it', async (t) => {
  const { scene, page } = await three(t);
  await choose(page, 3, 'Code and conversation');
  await apply(page);
  await page.locator('.top button', { hasText: 'Timeline' }).click();
  const left = page.locator('.tree-row.left');
  await left.waitFor();
  // The browser draws a row of the tree when it has found it to be on the screen; until then it has no text.
  await frames(page);
  assert.match(await left.innerText(), /make b[\s\S]*left behind/);
  await page.locator('.timeline input').fill('b.txt');
  await page.waitForFunction(() => document.querySelectorAll('.tree-row').length < 3);
  await page.locator('.timeline input').fill('');
  await page.locator('.tree-row.left .point').click();
  await page.locator('[role=menu]').waitFor();
  assert.equal(await page.locator('.menu-title').innerText(), '“make b”, left behind');
  assert.match(await page.locator('[role=menuitem]', { hasText: 'Summarise from' }).innerText(), /not in the conversation now/);
  await page.waitForTimeout(450);
  await page.locator('[role=menuitem]', { hasText: 'Go to the end of this attempt' }).click();
  await page.locator('#side-title', { hasText: 'the end of “make b”' }).waitFor();
  await apply(page);
  assert.equal(scene.read('b.txt'), 'three\n');
  assert.deepEqual(await prompts(page), ['write one', 'write two', 'make b']);
});
