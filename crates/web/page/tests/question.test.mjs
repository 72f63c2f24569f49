// Whether something may run: nobody answers by accident, sees less than what they answer, or is kept from answering.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { after } from 'node:test';
import { test } from './case.mjs';
import { closeBrowser } from './scene.mjs';
import { entry, play, prompted, replied } from './stage.mjs';

after(closeBrowser);
const pictures = new URL('../../../../target/pictures/', import.meta.url).pathname;
const asked = (more = {}) => ({ call: 'c1', tool: 'bash', title: 'bash: touch a', detail: 'touch a', why: 'it may change something', rule: { tool: 'bash', prefix: 'touch' }, ...more });
const running = { entries: [prompted(1, 'go')], state: 'running' };
const answers = (commands) => commands.filter((one) => one.type === 'answer').map((one) => one.answer);

/** A page on which nothing is asked yet, with the cursor in the composer and a clock that stands. */
async function waiting(t) {
  const played = await play(t, { view: running });
  await played.page.locator('#composer').focus();
  await played.page.clock.install();
  await played.page.clock.pauseAt(Date.now() + 60_000);
  return played;
}
async function ask(played, question = asked()) {
  const { page, tell } = played;
  tell({ type: 'permission_asked', question });
  await drawn(page, page.locator('[role=alertdialog]'));
}
/** Lets the page's clock go on, a frame at a time, until something is there. */
async function drawn(page, place) {
  while ((await place.count()) === 0) await page.clock.runFor(17);
}
/** The answers, when so many have come to the server. */
async function answersOf(commands, count) {
  while (answers(commands).length < count) await new Promise((resolve) => setTimeout(resolve, 10));
  return answers(commands);
}
const typed = (page) => page.locator('#composer').inputValue();

const focused = (page) => page.evaluate(() => document.activeElement.dataset.answer ?? document.activeElement.id ?? document.activeElement.className);
const badges = (page) => page.locator('.answers kbd').evaluateAll((all) => all.filter((one) => one.closest('button') && getComputedStyle(one).visibility === 'visible').length);

test('whoever types when something is asked goes on typing', async (t) => {
  for (const text of ['you should also write a changelog', 'add a test for it', 'no, wait', 'we', 'y']) {
    const played = await waiting(t);
    const { page, commands } = played;
    await page.keyboard.type('so ');
    await ask(played);
    await page.keyboard.type(text);
    await page.clock.runFor(1_000);
    await page.keyboard.type(' y');
    await page.keyboard.press('Backspace');
    assert.equal(await typed(page), `so ${text} `);
    assert.deepEqual([answers(commands), await badges(page)], [[], 0]);
    // It can be answered by keys all the same.
    await page.keyboard.press('Shift+Tab');
    await page.clock.runFor(100);
    assert.equal(await badges(page), 4);
    await page.keyboard.press('y');
    assert.deepEqual([answers(commands), await focused(page)], [[], 'y']);
    await page.keyboard.press('Enter');
    await page.clock.runFor(100);
    assert.deepEqual(await answersOf(commands, 1), [{ type: 'allow' }]);
    assert.equal(await typed(page), `so ${text} `);
    await page.context().close();
  }
});

test('whoever goes to the composer while something is asked types text', async (t) => {
  for (const wait of [0, 400, 5_000]) {
    const played = await waiting(t);
    const { page, commands } = played;
    await ask(played);
    await page.clock.runFor(wait);
    await page.locator('#composer').click();
    await page.keyboard.type('you should also write a changelog');
    await page.clock.runFor(1_000);
    assert.deepEqual([answers(commands), await typed(page), await badges(page)], [[], 'you should also write a changelog', 0]);
    // An empty composer is a text field, too.
    await page.keyboard.press('Control+A');
    await page.keyboard.press('Delete');
    await page.clock.runFor(10_000);
    await page.keyboard.type('n');
    assert.deepEqual([answers(commands), await typed(page)], [[], 'n']);
    await page.context().close();
  }
});

test('whoever begins a sentence without looking loses no letter and answers nothing', async (t) => {
  for (const wait of [0, 400, 60_000]) {
    for (const text of ['you should also write a changelog', 'y además', 'now', 'we wait', 'add a test', 'Yes', '1', ' nothing']) {
      const played = await waiting(t);
      const { page, commands } = played;
      await ask(played);
      await page.clock.runFor(wait);
      await page.keyboard.type(text);
      await page.clock.runFor(5_000);
      assert.deepEqual([answers(commands), (await typed(page)).trim()], [[], text.trim()], `after ${wait} ms`);
      await page.context().close();
    }
  }
});

test('whoever has just deleted what they typed is still typing', async (t) => {
  const played = await waiting(t);
  const { page, commands } = played;
  await page.keyboard.type('y');
  await page.keyboard.press('Backspace');
  await ask(played);
  await page.clock.runFor(400);
  assert.equal(await focused(page), 'composer');
  await page.keyboard.type('y');
  assert.deepEqual([answers(commands), await typed(page)], [[], 'y']);
});

test('a letter goes to an answer of a question that has been there for a while, and Enter gives it', async (t) => {
  const rule = { tool: 'bash', prefix: 'touch' };
  for (const [key, answer] of [['y', { type: 'allow' }], ['n', { type: 'deny', why: null }], ['a', { type: 'allow_always', rule }]]) {
    const played = await waiting(t);
    const { page, commands } = played;
    await ask(played);
    assert.equal(await page.locator('.answers button:disabled').count(), 4);
    await page.clock.runFor(400);
    assert.equal(await badges(page), 4);
    await page.keyboard.press(key);
    await page.clock.runFor(5_000);
    assert.deepEqual([answers(commands), await focused(page)], [[], key]);
    await page.keyboard.press('Enter');
    await page.clock.runFor(100);
    assert.deepEqual([await answersOf(commands, 1), await typed(page)], [[answer], '']);
    // What is typed until the session has heard of it is text.
    await page.keyboard.type('and u');
    assert.equal(await typed(page), 'and u');
    await page.context().close();
  }
  // Back from an answer to none, and to a reason.
  const { page, commands, ...played } = await waiting(t);
  await ask({ page, commands, ...played });
  await page.clock.runFor(400);
  await page.keyboard.press('y');
  await page.keyboard.press('Backspace');
  await page.keyboard.press('Enter');
  await page.keyboard.press('w');
  await page.keyboard.press('Enter');
  await page.clock.runFor(100);
  await page.locator('[aria-label="Why not"]').waitFor();
  await page.keyboard.type('you may not');
  await page.keyboard.press('Enter');
  await page.clock.runFor(100);
  assert.deepEqual(await answersOf(commands, 1), [{ type: 'deny', why: 'you may not' }]);
});

test('letters go to an answer from the conversation, and from no other field', async (t) => {
  const played = await waiting(t);
  const { page, commands } = played;
  await page.keyboard.press('Alt+ArrowUp');
  await ask(played);
  await page.clock.runFor(400);
  await page.locator('.e-prompt').focus();
  await page.keyboard.press('n');
  assert.equal(await focused(page), 'n');
  await page.locator('#session-search').focus();
  await page.keyboard.type('yn');
  await page.keyboard.press('Enter');
  assert.deepEqual([answers(commands), await page.locator('#session-search').inputValue(), await badges(page)], [[], 'yn', 0]);
});

test('the card does not move when somebody begins to type', async (t) => {
  for (const width of [1280, 700, 390]) {
    const { page } = await play(t, { view: { ...running, questions: [asked()] }, width });
    await page.locator('.answers button.primary:enabled').waitFor();
    const place = () => page.locator('[role=alertdialog]').boundingBox();
    const before = await place();
    await page.locator('#composer').focus();
    await page.keyboard.type('so');
    assert.deepEqual(await place(), before, String(width));
  }
});

test('a key that is held down answers nothing, nor one that is pressed for the question before', async (t) => {
  const played = await waiting(t);
  const { page, commands, tell } = played;
  await ask(played);
  await page.clock.runFor(400);
  await page.locator('[role=alertdialog]').focus();
  const again = () => page.evaluate(() => {
    const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, repeat: true, bubbles: true, cancelable: true }));
    return ['y', 'n', 'a', 'w', 'Enter'].map(press);
  });
  assert.deepEqual(await again(), [false, false, false, false, false]);
  await page.keyboard.press('y');
  assert.deepEqual(await again(), [false, false, false, false, false]);
  assert.deepEqual(answers(commands), []);
  await page.keyboard.press('Enter');
  tell({ type: 'permission_settled', call: 'c1', allowed: true });
  tell({ type: 'permission_asked', question: asked({ call: 'c2', title: 'bash: second', detail: 'second' }) });
  await drawn(page, page.locator('.question', { hasText: 'second' }));
  await page.keyboard.press('Enter');
  await page.keyboard.press('y');
  await page.keyboard.press('Enter');
  await page.clock.runFor(100);
  assert.equal((await answersOf(commands, 1)).length, 1);
});

test('a question is read out, and is answered without seeing it', async (t) => {
  const { page, commands } = await play(t, { view: { ...running, questions: [asked()] } });
  await page.locator('.app > [role=status]', { hasText: 'May it run? bash: touch a' }).waitFor();
  await page.locator('.answers button.primary:enabled').waitFor();
  await page.locator('#composer').focus();
  await page.keyboard.press('Shift+Tab');
  assert.match(await page.evaluate(() => document.activeElement.textContent), /say why/);
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('.answers button:disabled'));
  assert.deepEqual(await answersOf(commands, 1), [{ type: 'deny', why: null }]);
});

test('what is asked is seen as it is, or how much of it is not', async (t) => {
  mkdirSync(pictures, { recursive: true });
  const hidden = 'echo hello \u202e\u2066 // rm -rf x\u2069 \u2066 \u200b';
  const questions = {
    lines: asked({ title: `bash: ${hidden}`, detail: `${hidden}${'\n'.repeat(50)}; rm -rf / --no`, why: 'a\u202eb', rule: { tool: 'bash', prefix: 'echo \u202e' } }),
    long: asked({ title: `bash: echo ${'a'.repeat(5_000)} ; rm -rf /`, detail: `echo ${'a'.repeat(5_000)} ; rm -rf /`, rule: { tool: 'bash', prefix: 'b'.repeat(2_000) } }),
    edit: asked({ tool: 'edit_file', title: 'edit a.rs', detail: undefined, rule: null, diffs: [{ path: 'a.rs', added: 60, removed: 1, hunks: [{ start: [1, 1], lines: [{ kind: 'removed', text: 'let a = "\u202e";' }, ...Array.from({ length: 60 }, (_, at) => ({ kind: 'added', text: `let a${at} = 1;` }))] }] }] }),
    short: asked(),
  };
  for (const [name, question] of Object.entries(questions)) {
    for (const [look, window] of Object.entries({ light: {}, dark: { dark: true }, narrow: { width: 380, height: 700 }, low: { width: 900, height: 420 } })) {
      const { page } = await play(t, { view: { ...running, questions: [question] }, ...window });
      await page.locator('#composer').fill('a line\n'.repeat(40));
      const card = page.locator('[role=alertdialog]');
      await card.locator('.answers button.primary:enabled').waitFor();
      assert.doesNotMatch(await card.evaluate((one) => one.textContent), /[\u200b\u202a-\u202e\u2066-\u2069]/);
      for (const button of ['Yes, this once', 'No']) {
        const place = await card.getByRole('button', { name: button }).first().boundingBox();
        const height = page.viewportSize().height;
        assert.ok(place.y >= 0 && place.y + place.height <= height, `${name} ${look}: ${button} is at ${place.y}`);
        const isOnTop = await page.evaluate(([x, y]) => Boolean(document.elementFromPoint(x, y)?.closest('.answers button')), [place.x + 5, place.y + place.height / 2]);
        assert.ok(isOnTop, `${name} ${look}: ${button} is covered`);
      }
      const more = card.locator(':scope > .more');
      if (name === 'short') assert.equal(await more.count(), 0);
      else {
        assert.match(await more.innerText(), /… \d+ more lines? below/);
        await card.locator('.shown').evaluate((one) => one.scrollTo(0, one.scrollHeight));
        await more.waitFor({ state: 'detached' });
        await card.locator('.shown').evaluate((one) => one.scrollTo(0, 0));
        await more.waitFor();
      }
      await page.screenshot({ path: `${pictures}question-${name}-${look}.png` });
      await page.context().close();
    }
  }
});

test('what cannot be drawn is shown as text, and takes nothing with it', async (t) => {
  const odd = { path: 'a.rs', added: 1, removed: 0, hunks: [{ start: null, lines: [{ kind: 'added', text: 'the new line' }] }] };
  const entries = [
    prompted(1, 'go'),
    entry(2, { type: 'tool_result', call: 'c', title: 'x', outcome: 'nobody knows', parts: [{ type: 'text', text: 'what it said' }] }),
    replied(3, 'and on it goes'),
  ];
  const { page, commands, problems } = await play(t, { view: { ...running, entries, questions: [asked({ diffs: [odd] })] } });
  await page.locator('.row', { hasText: 'cannot be drawn' }).locator('pre', { hasText: 'what it said' }).waitFor();
  await page.locator('.e-reply', { hasText: 'and on it goes' }).waitFor();
  await page.locator('[role=alertdialog] pre', { hasText: '+the new line' }).waitFor();
  await page.locator('.answers button', { hasText: 'No' }).first().click();
  await page.waitForFunction(() => document.querySelector('.answers button:disabled'));
  assert.deepEqual(await answersOf(commands, 1), [{ type: 'deny', why: null }]);
  assert.deepEqual(problems, []);
});
