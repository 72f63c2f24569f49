// What the page says of what it does: to which files, to which half, and of what the model is told.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { test } from './case.mjs';
import { apply, choose, closeBrowser, menu, ready, say, Scene } from './scene.mjs';
import { play, prompted, replied } from './stage.mjs';

after(closeBrowser);
const config = '[permissions]\nallow = ["edits", "bash"]\n';
const ok = { says: 'Done.' };
const notice = (page, text) => page.locator('.notice', { hasText: text }).waitFor();

test('one file is deleted, restored or recreated, as the plan says, with one button', async (t) => {
  const commands = [['write_file', { path: 'new.txt', content: 'new\n' }], ['bash', { command: 'rm gone.txt; echo two > a.txt; mkdir d; echo x > d/e' }]];
  const scene = await Scene.start(t, { files: { 'a.txt': 'one\n', 'gone.txt': 'there\n' }, answers: [{ calls: commands }, ok], config });
  const page = await scene.page();
  await say(page, 'change them');
  // Files in words, lines in signs; a directory is no file.
  assert.match(await page.locator('.turn-changed').innerText(), /1 file changed, 2 added, 1 deleted\s+show diff/);
  const offer = (await menu(page, 1)).locator('[role=menuitem]', { hasText: 'Rewind code only' });
  await offer.locator('small', { hasText: 'restores 1 file, recreates 1, deletes 2; the conversation stays' }).waitFor();
  await page.keyboard.press('Escape');
  const one = async (path, does, done) => {
    await page.locator('.turn-changed button').click();
    await page.locator(`.only-this[aria-label="${does}: ${path}"]`).click();
    const title = `${does.split(' ')[0]} ${path}`;
    await page.locator('#side-title', { hasText: title }).waitFor();
    await page.waitForFunction(() => document.querySelector('.plan button.primary')?.getAttribute('aria-disabled') === 'false');
    assert.equal(await page.locator('.plan button.primary').innerText(), title);
    assert.equal(await page.locator('.plan .scopes, .plan .listed, .plan .only').count(), 0);
    assert.equal(await page.locator('.plan .summary-line').innerText(), '');
    await apply(page);
    await notice(page, `${path} ${done}`);
  };
  await one('new.txt', 'Delete new file', 'deleted');
  assert.equal(scene.read('new.txt'), null);
  await one('gone.txt', 'Recreate', 'recreated');
  assert.equal(scene.read('gone.txt'), 'there\n');
  await one('a.txt', 'Restore as it was before', 'restored');
  assert.equal(scene.read('a.txt'), 'one\n');
  // What is as it was then is not offered again.
  await page.locator('.turn-changed button').click();
  await page.locator('.only-this').first().waitFor();
  assert.deepEqual(await page.locator('.only-this').allInnerTexts(), ['Delete new file', 'Delete new file']);
});

test('what went back is said with what stays, and the model’s note in a line', async (t) => {
  const answers = [{ calls: [['bash', { command: 'echo two > a.txt; echo b > b.txt' }]] }, ok];
  const scene = await Scene.start(t, { files: { 'a.txt': 'one\n' }, answers, config });
  const page = await scene.page();
  await say(page, 'write');
  await choose(page, 1, 'Code only');
  await apply(page);
  await notice(page, 'Rewound the files to before 1 “write”: 1 file restored, 1 deleted. The conversation stays as it is');
  const note = page.locator('.e-note');
  assert.equal((await note.innerText()).trim(), '2 files are not as the model last saw them: a.txt, b.txt');
  await note.locator('summary').click();
  await note.locator('pre', { hasText: 'The user has taken these files back' }).waitFor();
  // What a key would undo is named before it does.
  await page.locator('.top h1').click();
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press('u');
  await page.locator('#side-title', { hasText: 'Undo rewind to before “write”' }).waitFor();
  await page.locator('.summary-line', { hasText: 'restores 1 file, recreates 1' }).waitFor();
  await page.locator('.plan button.primary').click();
  await notice(page, 'Undid rewind to before “write”: 1 file restored, 1 recreated');
  await page.keyboard.press('Escape');
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press('u');
  await page.locator('#side-title', { hasText: 'Undo turn “write”' }).waitFor();
  await page.locator('.side > header button').click();
  await choose(page, 1, 'Conversation only');
  await apply(page);
  await notice(page, 'Rewound the conversation to before 1 “write”. Files stay as they are');
});

test('a file that is written over or edited is shown with the lines that changed', async (t) => {
  const lines = (...marked) => Array.from({ length: 20 }, (_, at) => (marked.includes(at) ? `LINE ${at}` : `line ${at}`)).join('\n') + '\n';
  const calls = [
    ['write_file', { path: 'a.txt', content: lines(7) }],
    ['edit_file', { path: 'a.txt', old: '12', new: 'twelve' }],
    ['write_file', { path: 'b.txt', content: 'new\n' }],
  ];
  const scene = await Scene.start(t, { files: { 'a.txt': lines() }, answers: [{ calls: [['read_file', { path: 'a.txt' }]] }, { calls }, ok], config });
  const page = await scene.page();
  await say(page, 'write over it');
  const call = (at) => page.locator('.e-tool_result').nth(at);
  await call(3).locator('.counts').waitFor();
  assert.deepEqual(await page.locator('.e-tool_result .counts').allInnerTexts(), ['+1 −1', '+1 −1', '+1 −0']);
  assert.deepEqual(await call(1).locator('.dl.removed .tx, .dl.added .tx').allInnerTexts(), ['line 7', 'LINE 7']);
  assert.deepEqual(await call(2).locator('.dl.removed .tx, .dl.added .tx').allInnerTexts(), ['line 12', 'line twelve']);
  // The numbers of before and after are beside each other, and what changed within a line is marked.
  assert.deepEqual(await call(2).locator('.dl.removed .no').allInnerTexts(), ['13', '']);
  assert.deepEqual(await call(2).locator('.dl.added .no').allInnerTexts(), ['', '13']);
  assert.deepEqual(await call(2).locator('mark').allInnerTexts(), ['12', 'twelve']);
});

test('a refusal shows what the user said, and a turn that is stopped is said so in the conversation and at its way back', async (t) => {
  const answers = [{ calls: [['bash', { command: 'git push' }]] }, ok, { calls: [['edit_file', { path: 'a.txt', old: 'one', new: 'two' }]] }, { says: 'slow', pause_ms: 30_000 }];
  const scene = await Scene.start(t, { files: { 'a.txt': 'one\n' }, answers, config: '[permissions]\nallow = ["edits"]\n' });
  const page = await scene.page();
  await page.locator('#composer').fill('push it');
  await page.keyboard.press('Enter');
  await page.locator('.question').waitFor();
  await page.locator('.question button', { hasText: 'say why' }).click();
  await page.locator('.question input').fill('never push, please');
  await page.keyboard.press('Enter');
  await page.locator('.e-tool_result .outcome', { hasText: 'You said no: never push, please' }).waitFor();
  assert.doesNotMatch(await page.locator('.e-tool_result').innerText(), /Do not try it another way/);
  await ready(page);
  await page.locator('#composer').fill('edit it');
  await page.keyboard.press('Enter');
  await page.locator('.e-tool_result', { hasText: 'edit a.txt' }).waitFor();
  await page.locator('.stop').click();
  await notice(page, 'Turn stopped');
  await page.locator('.e-ended', { hasText: 'Stopped' }).waitFor();
  await ready(page);
  const seen = await page.locator('.transcript, .dock').allInnerTexts();
  assert.equal(seen.join('\n').match(/stopped|interrupted/gi)?.length, 2, seen.join('\n'));
  // What else there is to say does not hide the way back.
  await page.locator('#composer').fill('/label');
  await page.keyboard.press('Enter');
  await notice(page, '/label TEXT');
  await page.locator('.notice button', { hasText: 'Undo' }).click();
  await notice(page, 'Undid turn “edit it”: 1 file restored');
  assert.equal(scene.read('a.txt'), 'one\n');
});

test('a running turn is stopped from the menu, and the plan opens', async (t) => {
  const edit = { calls: [['edit_file', { path: 'a.txt', old: 'one', new: 'two' }]] };
  const scene = await Scene.start(t, { files: { 'a.txt': 'one\n' }, answers: [edit, { says: 'slow', pause_ms: 30_000 }], config });
  const page = await scene.page();
  await page.locator('#composer').fill('go wrong');
  await page.keyboard.press('Enter');
  await page.locator('.e-tool_result').waitFor();
  const items = await menu(page, 1);
  assert.equal(await page.locator('.menu-title').innerText(), 'Prompt 1 “go wrong”');
  assert.equal((await page.locator('.menu').innerText()).match(/turn is running/g)?.length, 1);
  assert.match(await items.locator('[role=menuitem]', { hasText: 'Fork' }).innerText(), /files stay as they are now/);
  await items.locator('[role=menuitem]', { hasText: 'Stop, then rewind' }).click();
  await page.locator('#side-title', { hasText: 'Rewind to before 1 “go wrong”' }).waitFor();
  await apply(page);
  assert.equal(scene.read('a.txt'), 'one\n');
  assert.equal(await page.locator('#composer').inputValue(), 'go wrong');
});

test('a long prompt is folded until all of it is wanted', async (t) => {
  const scene = await Scene.start(t);
  const page = await scene.page();
  await page.locator('#composer').fill(Array.from({ length: 30 }, (_, at) => `line ${at}`).join('\n'));
  await page.keyboard.press('Enter');
  const said = page.locator('.e-prompt .said');
  await said.waitFor();
  assert.equal((await said.innerText()).split('\n').length, 12);
  await page.locator('.e-prompt button', { hasText: 'Show all 30 lines' }).click();
  assert.equal((await said.innerText()).split('\n').length, 30);
});

/** A change that the session plans and makes; `more` is what its document says beside. */
const planned = (more) => ({ version: 1, what: 'rewind', operation: null, applied: false, session: null, scope: 'both', conversation: { leaves: [], returns: [] }, conversation_moved: null, safety: null, files: [], conflicts: [], kept: [], blocked: [], branch: null, gaps: [], gaps_total: 0, ledger: [], undoes: [], foreign: 0, still_open: [], left_over: [], fingerprint: 'f', ...more });

test('the first line of a plan says what its point stands for', async (t) => {
  const none = { added: 0, modified: 0, deleted: 0 };
  const checkpoints = [
    { checkpoint: 'c0ffee00', at: 0, label: 'good', note: null, changed: none, gaps: 0 },
    { checkpoint: 'beadfeed', at: 0, label: null, note: '> write', changed: none, turn: none, gaps: 0 },
  ];
  const entries = [prompted(1, 'write'), replied(2, 'Done.')];
  const replies = { plan: { type: 'change', document: planned({ means: 'session' }) }, checkpoints: { type: 'checkpoints', checkpoints } };
  const { page, commands } = await play(t, { view: { entries }, replies });
  const first = () => page.locator('.plan > :first-child');
  await choose(page, 1, 'Code and conversation');
  await page.locator('.plan .means').waitFor();
  assert.equal(await first().innerText(), 'This session’s changes since prompt 1 “write”');
  // A plan that leaves the files alone is about none of them.
  replies.plan.document = planned({ means: 'session', scope: 'conversation' });
  await page.locator('.scopes label', { hasText: 'Conversation only' }).click();
  await page.locator('.plan .means').waitFor({ state: 'detached' });
  await page.keyboard.press('Escape');
  const points = [
    ['good', 'workspace', 'The whole workspace as of checkpoint “good”', 'Rewind to checkpoint “good”'],
    ['> write', 'session', 'This session’s changes since the prompt “write”', 'Rewind to before “write”'],
  ];
  for (const [row, means, line, title] of points) {
    replies.plan.document = planned({ means, scope: 'code', conversation: null });
    await page.locator('#composer').fill('/checkpoints');
    await page.locator('#composer').press('Enter');
    await page.locator('.tree-row .point', { hasText: row }).click();
    await page.locator('.plan .means').waitFor();
    assert.equal(await first().innerText(), line);
    await page.locator('#side-title', { hasText: title }).waitFor();
    // The session knows what the point means; the page names no files.
    assert.equal(commands.findLast((command) => command.type === 'plan').change.files, undefined);
    await page.keyboard.press('Escape');
    await page.locator('.plan').waitFor({ state: 'detached' });
  }
});

test('a plan names the prompts that left earlier and whose files go back', async (t) => {
  const left_before = [{ id: 'p7', text: 'write b' }];
  const conversation = { leaves: [], returns: [], left_before };
  const entries = [prompted(1, 'write'), replied(2, 'Done.')];
  const { page } = await play(t, { view: { entries }, replies: { plan: { type: 'change', document: planned({ means: 'session', conversation }) } } });
  await choose(page, 1, 'Code and conversation');
  const listed = page.locator('.plan .listed', { hasText: 'Removed from the conversation earlier; their files go back too:' });
  await listed.waitFor();
  assert.deepEqual(await listed.locator('li').allInnerTexts(), ['write b']);
});

test('a plan and its rewind name each path that changed and does not go back, after a reload too', async (t) => {
  const entries = [prompted(1, 'write'), replied(2, 'Done.')];
  const not_restored = [{ path: 'big.dat', why: 'larger than `capture.max_file`' }, { path: { bytes: Buffer.from([0x61, 0xff]).toString('base64') }, why: 'a named pipe' }];
  const done = planned({ operation: 'o1', applied: true, scope: 'code', conversation: null, files: [{ path: 's.txt', action: 'restore', status: 'done', certainty: 'certain' }], not_restored });
  const operations = { type: 'operations', undo: { operation: 'o1', kind: 'rewind', what: '', at: 0 }, redo: null };
  const { page } = await play(t, { view: { entries }, replies: { plan: { type: 'change', document: planned({ means: 'session', not_restored }) }, apply: { type: 'change', document: done }, operations } });
  await choose(page, 1, 'Code and conversation');
  const paths = ['big.dat larger than capture.max_file', '"a\\377" a named pipe'];
  const stay = page.locator('.plan .stays');
  await stay.locator('p', { hasText: '2 paths changed and do not go back:' }).waitFor();
  assert.deepEqual(await stay.locator('.left-list li').allInnerTexts(), paths);
  await apply(page);
  const bar = page.locator('.notice.n-warning', { hasText: '1 file restored' });
  for (const isAgain of [false, true]) {
    if (isAgain) await page.reload();
    await bar.waitFor();
    assert.match(await bar.innerText(), /2 paths changed and did not go back:/);
    assert.deepEqual(await bar.locator('.left-list li').allInnerTexts(), paths);
    await bar.locator('button', { hasText: 'Undo' }).waitFor();
  }
});
