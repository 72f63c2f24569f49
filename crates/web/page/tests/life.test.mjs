// The life of a session in the browser.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { test } from './case.mjs';
import { closeBrowser, go, ready, say, Scene, untilGo } from './scene.mjs';

after(closeBrowser);
const ADD = { 'add.py': 'def add(a, b):\n    return a - b\n', 'src/main.rs': 'fn main() {}\n' };
const BASH = '[permissions]\nallow = ["bash"]\n';
const EDIT = { calls: [['edit_file', { path: 'add.py', old: 'a - b', new: 'a + b' }]] };

test('a prompt is said, streamed, edited with, and asked about', async (t) => {
  const answers = [{ thinks: 'It subtracts.', says: 'I will **mend** it.', ...EDIT }, { says: 'Done:\n\n```python\nreturn a + b\n```' }, { says: 'Again.' }];
  const scene = await Scene.start(t, { files: ADD, answers });
  const page = await scene.page();
  await page.locator('.welcome').waitFor();
  await page.locator('#composer').fill('mend add');
  await page.locator('#composer').press('Enter');
  const question = page.locator('[role=alertdialog]');
  await question.waitFor();
  assert.match(await question.innerText(), /edit add\.py/);
  assert.equal(await question.locator('.dl.added').innerText(), '2\n+\n    return a + b');
  assert.match(await page.locator('.status').innerText(), /waiting for you/);
  await question.locator('button.primary:enabled').waitFor();
  await question.focus();
  await page.keyboard.press('y');
  await page.keyboard.press('Enter');
  await ready(page);
  assert.equal(scene.read('add.py'), 'def add(a, b):\n    return a + b\n');
  assert.equal(await page.locator('.e-reply strong').innerText(), 'mend');
  assert.equal(await page.locator('figure.code .t-k').innerText(), 'return');
  assert.match(await page.locator('.thought summary').innerText(), /It subtracts/);
  assert.match(await page.locator('.e-tool_result').innerText(), /edit add\.py/);
  assert.match(await page.title(), /^mend add/);
  assert.match(await page.locator('.sidebar').innerText(), /mend add/);
  assert.match(await page.locator('.status').innerText(), /ready[\s\S]*scripted[\s\S]*store/);
  // The address holds no token, and a reload shows the same.
  assert.doesNotMatch(page.url(), /token/);
  await page.reload();
  await page.locator('[aria-label="Prompt 1"]').waitFor();
  await say(page, 'once more');
  assert.equal(await page.locator('.e-prompt').count(), 2);
});

test('no is told to the model, with why; always is asked once', async (t) => {
  const bash = (command) => ({ calls: [['bash', { command }]] });
  const scene = await Scene.start(t, { files: ADD, answers: [bash('touch no'), { says: 'As you wish.' }, bash('echo one'), bash('echo two'), { says: 'Both.' }] });
  const page = await scene.page();
  await page.locator('#composer').fill('make it');
  await page.keyboard.press('Enter');
  await page.locator('[role=alertdialog] button.primary:enabled').waitFor();
  await page.locator('[role=alertdialog]').focus();
  await page.keyboard.press('w');
  await page.keyboard.press('Enter');
  await page.locator('[aria-label="Why not"]').fill('use the other one');
  await page.keyboard.press('Enter');
  await ready(page);
  assert.equal(scene.read('no'), null);
  assert.match(await page.locator('.e-tool_result').innerText(), /You said no: use the other one/);
  assert.match(scene.requests, /use the other one/);
  await page.locator('#composer').fill('say it twice');
  await page.keyboard.press('Enter');
  await page.locator('[role=alertdialog] .answers button', { hasText: 'always' }).click();
  await ready(page);
  assert.match(await page.locator('.inner').innerText(), /Allowed from now on: bash: echo/);
  assert.match(await page.locator('.inner').innerText(), /Both\./);
});

test('the composer completes, recalls, takes blocks and images, and keeps lines', async (t) => {
  const scene = await Scene.start(t, { files: ADD, answers: [{ says: 'Yes.' }] });
  const page = await scene.page();
  await say(page, 'first thing');
  const box = page.locator('#composer');
  await box.focus();
  await page.keyboard.press('ArrowUp');
  assert.equal(await box.inputValue(), 'first thing');
  await page.keyboard.press('ArrowDown');
  assert.equal(await box.inputValue(), '');
  await box.pressSequentially('see @mai');
  await page.locator('[role=option]', { hasText: 'src/main.rs' }).waitFor();
  await page.keyboard.press('Enter');
  assert.equal(await box.inputValue(), 'see @src/main.rs ');
  await page.keyboard.press('Shift+Enter');
  const paste = async (run) => page.evaluate(run);
  await paste(() => {
    const data = new DataTransfer();
    data.setData('text/plain', Array.from({ length: 12 }, (_, at) => `line ${at}`).join('\n'));
    document.querySelector('#composer').dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
  });
  assert.match(await box.inputValue(), /\[pasted 12 lines #1\]$/);
  await paste(async () => {
    const canvas = Object.assign(document.createElement('canvas'), { width: 4, height: 4 });
    const blob = await new Promise((resolve) => canvas.toBlob(resolve));
    const data = new DataTransfer();
    data.items.add(new File([blob], 'a.png', { type: 'image/png' }));
    document.querySelector('form.composer').dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
  });
  await page.waitForFunction(() => document.querySelector('#composer').value.includes('[image png #2]'));
  assert.match(await box.inputValue(), /\n\[pasted 12 lines #1\]\[image png #2\]$/);
  await box.press('Enter');
  await page.locator('[aria-label="Prompt 2"]').waitFor();
  await ready(page);
  const prompt = page.locator('[aria-label="Prompt 2"]');
  assert.match(await prompt.innerText(), /see @src\/main\.rs[\s\S]*\[pasted 12 lines\]/);
  await prompt.locator('canvas').waitFor();
  await prompt.locator('summary', { hasText: 'pasted' }).click();
  assert.match(await prompt.locator('pre').innerText(), /line 11/);
  assert.match(scene.requests, /line 11/);
});

test('commands do what they say, and unknown ones are not said to the model', async (t) => {
  const scene = await Scene.start(t, { files: ADD, answers: [{ says: 'Yes.' }] });
  const page = await scene.page();
  const type = async (text) => {
    await page.locator('#composer').fill(text);
    await page.keyboard.press('Escape');
    await page.locator('#composer').press('Enter');
  };
  await say(page, 'hello');
  await type('/nosuch');
  await page.locator('.notice', { hasText: 'no command /nosuch' }).waitFor();
  await type('/clear the cache directory');
  await page.locator('.notice', { hasText: '/clear takes nothing behind it' }).waitFor();
  assert.equal(await page.locator('.cleared, .e-prompt').count(), 1);
  await page.locator('#composer').fill('');
  await say(page, ' /clear the cache directory');
  assert.equal(await page.locator('.e-prompt').count(), 2);
  await type('/help');
  await page.locator('#side-title', { hasText: 'Keys and commands' }).waitFor();
  await page.keyboard.press('Escape');
  await page.locator('.side').waitFor({ state: 'detached' });
  await type('/clear');
  await page.locator('.cleared').waitFor();
  await type('/model openai/other');
  await page.locator('.status .model', { hasText: 'other' }).waitFor();
  await type('/checkpoints');
  await page.locator('.tree-row').first().waitFor();
  await page.keyboard.press('Escape');
  await type('/label good');
  await page.locator('.notice', { hasText: '“good”' }).waitFor();
  const [download] = await Promise.all([page.waitForEvent('download'), type('/export')]);
  assert.match(download.suggestedFilename(), /^retake-\w{8}\.jsonl$/);
});

test('sessions are begun, found, gone to and deleted', async (t) => {
  const scene = await Scene.start(t, { files: ADD, answers: [{ says: 'Yes.' }] });
  const page = await scene.page();
  await say(page, 'about apples');
  await say(page, 'then quinces');
  await page.locator('.sidebar .new button').click();
  await page.locator('.welcome').waitFor();
  await say(page, 'about pears');
  await page.locator('.sidebar li').nth(1).waitFor();
  await page.locator('#session-search').fill('appl');
  assert.equal(await page.locator('.sidebar li').count(), 1);
  // What was said later is found as well.
  await page.locator('#session-search').fill('quince');
  await page.waitForFunction(() => [...document.querySelectorAll('.sidebar .title')].map((one) => one.innerText).join() === 'about apples');
  await page.locator('#session-search').fill('appl');
  await page.locator('.sidebar .pick').click();
  await page.locator('.e-prompt', { hasText: 'about apples' }).waitFor();
  await page.locator('#session-search').fill('');
  const pears = page.locator('.sidebar li', { hasText: 'pears' });
  await pears.hover();
  await pears.locator('.delete').click();
  await pears.locator('.danger').click();
  await pears.waitFor({ state: 'detached' });
  assert.equal(await page.locator('.sidebar li').count(), 1);
});

test('a turn is stopped with Esc, and what is said meanwhile is held', async (t) => {
  const scene = await Scene.start(t, { files: ADD, answers: [untilGo, { says: 'slow' }, { says: 'held one' }, { says: 'x', pause_ms: 60_000 }], config: BASH });
  const page = await scene.page();
  await page.locator('#composer').fill('slow one');
  await page.keyboard.press('Enter');
  await page.locator('.stop').waitFor();
  await page.locator('#composer').fill('next one');
  await page.keyboard.press('Enter');
  await page.locator('.status', { hasText: '1 queued' }).waitFor();
  go(scene);
  await page.locator('.e-reply', { hasText: 'held one' }).waitFor();
  await ready(page);
  await page.locator('#composer').fill('never ends');
  await page.keyboard.press('Enter');
  await page.locator('.stop').waitFor();
  await page.locator('#composer').press('Escape');
  await ready(page);
  // Nothing had come of it: what was said is in the composer again.
  assert.equal(await page.locator('#composer').inputValue(), 'never ends');
});

test('a prompt that is held can be taken back', async (t) => {
  const scene = await Scene.start(t, { files: ADD, answers: [untilGo, { says: 'slow' }, { says: 'next' }], config: BASH });
  const page = await scene.page();
  await page.locator('#composer').fill('slow one');
  await page.keyboard.press('Enter');
  await page.locator('.stop').waitFor();
  await page.locator('#composer').fill('not after all');
  await page.keyboard.press('Enter');
  await page.locator('.held', { hasText: 'not after all' }).waitFor();
  await page.locator('.held button', { hasText: 'Edit' }).click();
  await page.waitForFunction(() => document.querySelector('#composer').value === 'not after all' && document.activeElement.id === 'composer');
  go(scene);
  await ready(page);
  assert.equal(await page.locator('.e-prompt').count(), 1);
});

test('what a model says is never more than text', async (t) => {
  const evil = '<img src=x onerror="window.evil=1"><script>window.evil=2</script> [x](javascript:window.evil=3) `<b>`\n\n<iframe src="javascript:window.evil=4"></iframe>\n\n![i](https://example.invalid/x.png)';
  const scene = await Scene.start(t, { files: ADD, answers: [{ thinks: evil, says: evil, calls: [['bash', { command: `printf '%s' '<svg onload=window.evil=5>'; touch '<b>x'` }]] }, { says: evil }], config: '[permissions]\nallow = ["bash"]\n' });
  const page = await scene.page();
  const asked = [];
  page.on('request', (request) => asked.push(request.url()));
  await say(page, evil.replace(/\n/g, ' '));
  await page.locator('.thought summary').first().click();
  await page.locator('[aria-label="Prompt 1"]').hover();
  await page.locator('.rewind').click();
  await page.locator('[role=menu]').waitFor();
  assert.equal(await page.evaluate(() => window.evil), undefined);
  assert.equal(await page.locator('.inner img, .inner iframe, .inner script, .inner svg, a[href^="javascript"]').count(), 0);
  assert.deepEqual(asked.filter((url) => !url.startsWith(new URL('/', scene.url).href)), []);
});
