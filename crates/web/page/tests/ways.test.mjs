// The ways around: sessions, the timeline, what is typed and found, and what tells that somebody is waited for.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { test } from './case.mjs';
import { choose, closeBrowser, frames, say, Scene } from './scene.mjs';
import { entry, play, prompted, replied } from './stage.mjs';

after(closeBrowser);
const question = { call: 'c1', tool: 'bash', title: 'bash: touch a', detail: 'touch a', why: 'it may change something', rule: null };
const talk = (count) => Array.from({ length: count }, (_, at) => [prompted(2 * at + 1, `prompt number ${at + 1}`), replied(2 * at + 2, 'Some words of an answer. '.repeat(40))]).flat();
const treeOf = (entries) => {
  const prompts = entries.filter((one) => one.type === 'prompt');
  const facts = (one, at) => ({ id: one.id, parent: prompts[at - 1]?.id ?? null, at: one.at, text: one.parts[0].text, number: at + 1, label: null, files: null, forks: [] });
  return { type: 'tree', head: entries.at(-1).id, prompts: prompts.map(facts) };
};
const type = async (page, text) => {
  await page.locator('#composer').fill(text);
  await page.keyboard.press('Escape');
  await page.locator('#composer').press('Enter');
};

test('what is told belongs to its session, the last used is first, and there is one new session', async (t) => {
  const scene = await Scene.start(t, { files: { a: 'a' }, answers: [{ says: 'Yes.' }] });
  const page = await scene.page();
  await say(page, 'about apples');
  await choose(page, 1, 'Fork from here');
  await page.locator('.notice', { hasText: 'You are in a fork' }).waitFor();
  await page.locator('.sidebar .tag', { hasText: 'fork' }).waitFor();
  const isNew = page.locator('.sidebar li', { hasText: 'nothing said yet' });
  await page.locator('.sidebar .new button').click();
  await page.locator('.sidebar li.here', { hasText: 'nothing said yet' }).waitFor();
  assert.equal(await page.locator('.notice').count(), 0);
  const address = page.url();
  await page.locator('.sidebar .new button').click();
  await page.locator('.sidebar li', { hasText: 'apples' }).last().locator('.pick').click();
  await page.locator('.e-prompt').waitFor();
  await page.locator('.sidebar .new button').click();
  await page.locator('.welcome').waitFor();
  assert.deepEqual([await isNew.count(), page.url()], [1, address]);
  await say(page, 'about pears');
  await page.waitForFunction(() => document.querySelector('.sidebar li')?.textContent.includes('pears'));
  await page.locator('.sidebar li', { hasText: 'apples' }).last().locator('.pick').click();
  await page.locator('.e-prompt', { hasText: 'apples' }).waitFor();
  await say(page, 'more apples');
  await page.waitForFunction(() => document.querySelector('.sidebar li')?.textContent.includes('2 prompts'));

  // Deleting says what is lost, moves nothing, and is left with Esc.
  const pears = page.locator('.sidebar li', { hasText: 'pears' });
  const places = () => page.locator('.sidebar .pick').evaluateAll((all) => all.map((one) => one.getBoundingClientRect().top));
  await pears.hover();
  const before = await places();
  await pears.locator('.delete').click();
  assert.match(await pears.locator('.sure').innerText(), /conversation and the points[\s\S]*lost/);
  assert.deepEqual(await places(), before);
  await page.keyboard.press('Escape');
  await page.locator('.sure').waitFor({ state: 'detached' });
  await page.keyboard.press('Enter');
  await pears.locator('.sure .danger').click();
  await pears.waitFor({ state: 'detached' });

  // Esc leaves the search.
  await page.locator('#session-search').fill('apples');
  await page.keyboard.press('Escape');
  await page.keyboard.type('hello');
  assert.deepEqual([await page.locator('#session-search').inputValue(), await page.locator('#composer').inputValue()], ['', 'hello']);
});

test('a command takes the number of a prompt', async (t) => {
  const scene = await Scene.start(t, { files: { a: 'a' }, answers: [{ says: 'Yes.' }] });
  const page = await scene.page();
  for (const text of ['first', 'second', 'third']) await say(page, text);
  await type(page, '/rewind 2');
  await page.locator('.menu-title', { hasText: 'Prompt 2 “second”' }).waitFor();
  await page.keyboard.press('Escape');
  await type(page, '/diff 2');
  await page.locator('#side-title', { hasText: 'turn 2' }).waitFor();
  await page.keyboard.press('Escape');
  await type(page, '/label 2 good');
  await page.locator('[aria-label="Prompt 2"] .label', { hasText: 'good' }).waitFor();
  await type(page, '/fork 9');
  await page.locator('.notice', { hasText: 'There is no prompt 9. The last one is 3' }).waitFor();
  await type(page, '/rewind all of it');
  await page.locator('.notice', { hasText: '/rewind takes the number of a prompt' }).waitFor();
  // One that is taken is told where it was typed.
  await choose(page, 3, 'Label');
  await page.locator('.label-form input').fill('good');
  await page.keyboard.press('Enter');
  await page.locator('.label-form [role=alert]', { hasText: /\w/ }).waitFor();
  await page.keyboard.press('Escape');
  await type(page, '/fork 2');
  await page.locator('.fork-mark').waitFor();
  await page.waitForFunction(() => document.querySelector('#composer').value === 'second');
  assert.equal(await page.locator('.e-prompt').count(), 1);
});

test('the timeline shows where one is, goes to a prompt, and opens its menu', async (t) => {
  const entries = talk(60);
  for (const [width, height] of [[1280, 800], [390, 844]]) {
    const { page } = await play(t, { view: { entries }, width, height, replies: { tree: treeOf(entries), targets: { type: 'targets', head: null, targets: [] } } });
    await page.locator('.e-prompt', { hasText: 'number 60' }).waitFor();
    await page.locator('.top button', { hasText: 'Timeline' }).click();
    await page.locator('.tree-row[aria-current] .no', { hasText: '60' }).waitFor();
    await page.locator('.side > header button').click();
    await page.evaluate(() => document.querySelector('.scroll').scrollTo(0, document.querySelector('.scroll').scrollHeight / 2));
    await frames(page);
    await page.locator('.top button', { hasText: 'Timeline' }).click();
    const here = page.locator('.tree-row[aria-current]');
    await here.waitFor();
    await frames(page);
    const number = Number(await here.locator('.no').innerText());
    assert.ok(number > 20 && number < 40, String(number));
    assert.ok(await here.evaluate((row) => row.getBoundingClientRect().top > 0 && row.getBoundingClientRect().bottom < innerHeight));
    await page.locator('.tree-row', { has: page.getByText('prompt number 7', { exact: true }) }).locator('.point').click();
    await page.locator('.e-prompt.current', { hasText: 'prompt number 7' }).waitFor();
    assert.equal(await page.locator('.side').count(), width > 900 ? 1 : 0);
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Prompt 7');
    if (width < 900) continue;
    await frames(page);
    assert.equal(await here.locator('.no').innerText(), '7');
    await here.locator('[data-menu]').click();
    await page.locator('.menu-title', { hasText: 'number 7' }).waitFor();
    await page.keyboard.press('Escape');
    await page.locator('.timeline input').focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.locator('.menu-title', { hasText: 'number 60' }).waitFor();
  }
});

test('the timeline tells attempts apart, names forks, and does not move when points are compared', async (t) => {
  const row = (id, parent, number, more = {}) => ({ id, parent, at: 1, text: `prompt ${id}`, number, label: null, files: { added: 0, modified: 1, deleted: 0, tools: ['bash: ls'], ran_commands: true }, forks: [], ...more });
  const prompts = [row('a', null, 1), row('b', 'a', null), row('c', 'b', null), row('d', 'a', null), row('e', 'a', 2, { forks: ['aaaa', 'gone'] }), row('f', 'e', 3)];
  const { page } = await play(t, { view: { entries: talk(1) }, replies: { tree: { type: 'tree', head: 'f', prompts }, targets: { type: 'targets', head: null, targets: [] } } });
  await page.locator('.top button', { hasText: 'Timeline' }).click();
  const rows = page.locator('.tree-row');
  await rows.nth(5).waitFor();
  // The browser draws a row of the tree when it has found it to be on the screen; until then it has no text.
  await frames(page);
  const gap = await rows.evaluateAll((all) => all.map((one) => Number.parseFloat(getComputedStyle(one).paddingBottom) > 5));
  assert.deepEqual(gap, [false, false, true, false, true, false]);
  assert.match(await page.locator('.tree-row .fork').first().innerText(), /fork\s*played/);
  assert.equal(await page.locator('.tree-row .warning').count(), 0);
  const tops = () => rows.evaluateAll((all) => all.map((one) => one.getBoundingClientRect().top));
  const before = await tops();
  await rows.nth(5).locator('.ab button').first().click();
  assert.match(await page.locator('.compare').innerText(), /From before 1 “prompt a” to now/);
  assert.deepEqual(await tops(), before);
});

test('the title of the tab and a covered conversation tell that somebody is waited for', async (t) => {
  const { page, tell } = await play(t, { view: { entries: talk(1), state: 'running' }, width: 390, height: 844, touch: true });
  await page.waitForFunction(() => document.title === '◌ prompt number 1 · Retake');
  await page.locator('.top button', { hasText: 'Timeline' }).tap();
  await page.locator('.side').waitFor();
  tell({ type: 'permission_asked', question });
  await page.waitForFunction(() => document.title === '● question · prompt number 1 · Retake');
  await page.locator('.asked').tap();
  await page.locator('.side').waitFor({ state: 'detached' });
  assert.equal(await page.locator('.asked').count(), 0);
  // No keys are told where there are none.
  assert.equal(await page.locator('.answers kbd:visible').count(), 0);
  tell({ type: 'permission_settled', call: 'c1', allowed: true });
  tell({ type: 'state_changed', state: 'idle' });
  await page.waitForFunction(() => document.title === 'prompt number 1 · Retake');
});

test('each paragraph has its own direction', async (t) => {
  const entries = [prompted(1, 'أضف ملفا.\nand one more.'), replied(2, 'أضفت `a.txt` إلى المشروع.\n\nAnd done.\n\n- قائمة')];
  const { page } = await play(t, { view: { entries } });
  const direction = (selector) => page.locator(selector).evaluateAll((all) => all.map((one) => getComputedStyle(one).direction));
  assert.deepEqual(await direction('.e-reply p'), ['rtl', 'ltr']);
  assert.deepEqual(await direction('.e-reply li'), ['rtl']);
  assert.equal(await page.locator('.said').evaluate((one) => getComputedStyle(one).unicodeBidi), 'plaintext');
});

test('what is found in a fold is opened, marked and in sight', async (t) => {
  const [from, to] = [talk(9)[0].id, talk(9)[5].id];
  const summary = entry(19, { type: 'summary', from, to, text: `${'Nothing. \n\n'.repeat(80)}Here is the zebra.`, by: { why: 'user' } });
  const { page } = await play(t, { view: { entries: [...talk(9), summary, prompted(20, 'and on')] } });
  await page.locator('.top [aria-label="Find in the conversation"]').click();
  await page.keyboard.type('ZEBRA');
  await page.locator('.row.pointed details[open]').waitFor();
  await page.waitForFunction(() => {
    const [range] = CSS.highlights.get('found') ?? [];
    const [place, box] = [range?.getBoundingClientRect(), document.querySelector('.scroll').getBoundingClientRect()];
    return range?.toString() === 'zebra' && place.top >= box.top && place.bottom <= box.bottom;
  });
  await page.keyboard.press('Escape');
  await page.waitForFunction(() => !CSS.highlights.has('found') && !document.querySelector('.find'));
});

test('a turn that runs when the page is loaded keeps its clock, and revives no bar', async (t) => {
  const entries = [{ ...prompted(1, 'go'), at: Date.now() - 125_000 }];
  const operation = { operation: 'o1', kind: 'turn', what: 'x', at: 0 };
  const given = { replies: { operations: { type: 'operations', undo: operation, redo: null } }, stored: { 'retake-bar-aaaa': JSON.stringify({ operation: 'o1', verb: 'Undo', text: 'Went back' }) } };
  const { page } = await play(t, { view: { entries, state: 'running' }, ...given });
  await page.locator('.status .state', { hasText: /2 ?m/ }).waitFor();
  await page.locator('.top .undo[aria-label^="Undo turn"]').waitFor();
  assert.equal(await page.locator('.notice').count(), 0);
  const idle = await play(t, { view: { entries }, ...given });
  await idle.page.locator('.notice', { hasText: 'Went back' }).waitFor();
});

test('the composer is as high as its text, and takes files of a phone', async (t) => {
  const { page } = await play(t, { width: 390, height: 844 });
  const box = page.locator('#composer');
  const height = () => box.evaluate((one) => one.offsetHeight);
  const one = await height();
  await box.fill('a sentence that needs two lines on a phone, and one elsewhere');
  const two = await height();
  assert.ok(two > one + 15, `${one} ${two}`);
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.waitForFunction((high) => Math.abs(document.querySelector('#composer').offsetHeight - high) < 2, one);
  await page.setViewportSize({ width: 390, height: 844 });
  await page.waitForFunction((high) => Math.abs(document.querySelector('#composer').offsetHeight - high) < 2, two);
  await box.fill('');
  const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
  const [chooser] = await Promise.all([page.waitForEvent('filechooser'), page.locator('.attach').click()]);
  await chooser.setFiles([{ name: 'a.png', mimeType: 'image/png', buffer: png }, { name: 'b.txt', mimeType: 'text/plain', buffer: Buffer.from('one\ntwo\n') }]);
  await page.waitForFunction(() => /^\[image png #1\]\[pasted \d lines #2\]$/.test(document.querySelector('#composer').value));
  // Each is there once.
  assert.equal((await page.locator('form.composer').innerText()).includes('image png'), false);
});

test('commands stand in two columns, with what follows them, and tell that there are more', async (t) => {
  const { page } = await play(t, {});
  await page.locator('#composer').focus();
  await page.keyboard.type('/');
  await page.locator('.choices .rest', { hasText: /\d+ more/ }).waitFor();
  const lefts = await page.locator('.choices .about').evaluateAll((all) => [...new Set(all.map((one) => Math.round(one.getBoundingClientRect().left)))]);
  assert.equal(lefts.length, 1);
  assert.match(await page.locator('.choices .name').first().innerText(), /^\/rewind \[NUMBER\]$/);
});

test('the frame of the focus is around the prompt', async (t) => {
  const { page } = await play(t, { view: { entries: talk(1) }, width: 1600 });
  await page.keyboard.press('Alt+ArrowUp');
  const widths = await page.locator('.e-prompt').evaluate((row) => [row, row.firstElementChild].map((one) => getComputedStyle(one).outlineStyle));
  assert.deepEqual(widths, ['none', 'solid']);
});
