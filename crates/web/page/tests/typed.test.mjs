// What was typed is not lost, whatever becomes of the session, the server or the prompt.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { test } from './case.mjs';
import { closeBrowser, ready, say, Scene } from './scene.mjs';

after(closeBrowser);
const SLOW = [{ says: 'slow', pause_ms: 60_000 }, { says: 'next' }];
const typed = (page, text) => page.waitForFunction((wanted) => document.querySelector('#composer')?.value === wanted, text);
const box = (page) => page.locator('#composer');
const newSession = async (page) => {
  const before = page.url();
  await page.locator('.new button').click();
  await page.waitForFunction((old) => location.href !== old, before);
  await ready(page);
};
const idOf = (page) => page.evaluate(() => location.hash.slice(4));
const goTo = (page, id) => page.evaluate((to) => (location.hash = `#/s/${to}`), id);
/** The draft of a session, as somebody who has just come sees it. */
async function draftOf(scene, id) {
  const page = await scene.page();
  await goTo(page, id);
  await page.waitForFunction((wanted) => location.hash.endsWith(wanted) && document.querySelector('.status .state'), id);
  await page.waitForFunction(() => document.querySelector('#composer').value !== '');
  return page.locator('#composer').inputValue();
}
const restart = async (scene, signal) => {
  const gone = new Promise((resolve) => scene.server.once('exit', resolve));
  scene.server.kill(signal);
  await gone;
  await scene.serve(scene.port);
};

test('a session that is left while its turn runs keeps what was typed, here and for others', async (t) => {
  const scene = await Scene.start(t, { answers: SLOW });
  const page = await scene.page();
  const first = await idOf(page);
  await box(page).fill('slow one');
  await page.keyboard.press('Enter');
  await page.locator('.stop').waitFor();
  await box(page).fill('half a thought');
  await newSession(page);
  assert.equal(await box(page).inputValue(), '');
  await box(page).fill('another half');
  const second = await idOf(page);
  await goTo(page, first);
  await typed(page, 'half a thought');
  await goTo(page, second);
  await typed(page, 'another half');
  assert.equal(await draftOf(scene, first), 'half a thought');
});

test('so does one in which something is asked', async (t) => {
  const scene = await Scene.start(t, { answers: [{ calls: [['bash', { command: 'true' }]] }, { says: 'Done.' }] });
  const page = await scene.page();
  const first = await idOf(page);
  await box(page).fill('do it');
  await page.keyboard.press('Enter');
  await page.locator('[role=alertdialog]').waitFor();
  await box(page).fill('half a thought');
  await newSession(page);
  await goTo(page, first);
  await typed(page, 'half a thought');
  assert.equal(await draftOf(scene, first), 'half a thought');
});

test('without a server what was typed stays in the tab', async (t) => {
  const scene = await Scene.start(t);
  const page = await scene.page();
  await say(page, 'one');
  const first = await idOf(page);
  await newSession(page);
  await say(page, 'two');
  const second = await idOf(page);
  await scene.kill();
  await box(page).fill('half a thought');
  await goTo(page, first);
  await typed(page, '');
  await scene.serve(scene.port);
  await goTo(page, second);
  await typed(page, 'half a thought');
});

test('what was typed in a session that is deleted goes to the one that takes its place', async (t) => {
  const scene = await Scene.start(t);
  const page = await scene.page();
  await say(page, 'one');
  const other = await scene.tab(page);
  await other.locator('[aria-label="Prompt 1"]').waitFor();
  await box(page).fill('half a thought');
  await other.locator('.sidebar li.here .delete').click();
  await other.locator('.sure .danger').click();
  const said = page.locator('.link[role=alert] button');
  await said.click();
  await page.locator('.welcome').waitFor();
  await ready(page);
  await typed(page, 'half a thought');
});

test('a first prompt that is half typed outlives the server', async (t) => {
  const scene = await Scene.start(t);
  const page = await scene.page();
  const before = page.url();
  await box(page).fill('half a thought');
  await restart(scene, 'SIGTERM');
  await page.waitForFunction((old) => location.href !== old, before, { timeout: 20_000 });
  await ready(page);
  await typed(page, 'half a thought');
});

for (const signal of ['SIGKILL', 'SIGTERM']) {
  test(`a prompt that was held when the server ended waits, and is not shown as held: ${signal}`, async (t) => {
    const scene = await Scene.start(t, { answers: [{ says: 'slow', pause_ms: 20_000 }, { says: 'next' }] });
    const page = await scene.page();
    await box(page).fill('slow one');
    await page.keyboard.press('Enter');
    await page.locator('.stop').waitFor();
    await box(page).fill('held one');
    await page.keyboard.press('Enter');
    await page.locator('.held', { hasText: 'held one' }).waitFor();
    await restart(scene, signal);
    await page.waitForFunction(() => document.querySelector('#composer').value.includes('held one'), null, { timeout: 20_000 });
    await page.locator('.held').waitFor({ state: 'detached' });
  });
}

test('a held prompt that is taken back is joined to what is typed', async (t) => {
  const scene = await Scene.start(t, { answers: [{ says: 'slow', pause_ms: 60_000 }] });
  const page = await scene.page();
  await box(page).fill('slow one');
  await page.keyboard.press('Enter');
  await page.locator('.stop').waitFor();
  await box(page).fill('not after all');
  await page.keyboard.press('Enter');
  await page.locator('.held', { hasText: 'not after all' }).waitFor();
  await box(page).fill('something else');
  await page.locator('.held button', { hasText: 'Edit' }).click();
  await typed(page, 'not after all\n\nsomething else');
});

test('a prompt that is refused is whole, and in the session that it was meant for', async (t) => {
  const scene = await Scene.start(t);
  const page = await scene.page();
  await say(page, 'one');
  const first = await idOf(page);
  const long = 'word '.repeat(100).trim();
  let fail = () => {};
  await page.route('**/commands', async (route) => {
    if (JSON.parse(route.request().postData()).command.type !== 'prompt') return route.continue();
    await new Promise((resolve) => (fail = resolve));
    return route.abort();
  });
  await box(page).fill(long);
  await page.keyboard.press('Enter');
  await typed(page, '');
  await box(page).fill('and more');
  fail();
  await typed(page, `${long}\n\nand more`);
  // Said, then elsewhere before the answer.
  await page.waitForTimeout(450);
  await page.keyboard.press('Enter');
  await typed(page, '');
  await newSession(page);
  fail();
  await page.locator('.notice', { hasText: 'Not sent' }).waitFor();
  assert.equal(await box(page).inputValue(), '');
  await goTo(page, first);
  await typed(page, `${long}\n\nand more`);
});

test('a prompt that was on its way when the page was loaded anew is in the composer, unless it was said', async (t) => {
  const scene = await Scene.start(t);
  const page = await scene.page();
  await say(page, 'one');
  let isCut = true;
  await page.route('**/commands', async (route) => {
    const { command } = JSON.parse(route.request().postData());
    if (command.type !== 'prompt') return route.continue();
    // It arrives or it does not; its answer never does.
    if (!isCut) await route.fetch();
    await new Promise(() => {});
  });
  await box(page).fill('two');
  await page.keyboard.press('Enter');
  await typed(page, '');
  await page.reload();
  await ready(page);
  await typed(page, 'two');
  isCut = false;
  await page.waitForTimeout(450);
  await page.keyboard.press('Enter');
  await page.locator('[aria-label="Prompt 2"]').waitFor();
  await page.reload();
  await page.locator('[aria-label="Prompt 2"]').waitFor();
  await ready(page);
  assert.equal(await box(page).inputValue(), '');
});

test('looking through what was said before takes nothing from what is typed', async (t) => {
  const scene = await Scene.start(t);
  const page = await scene.page();
  await say(page, 'one');
  const first = await idOf(page);
  await box(page).focus();
  await page.evaluate(() => navigator.clipboard.writeText('line\n'.repeat(8)));
  await page.keyboard.press('Control+V');
  await typed(page, '[pasted 8 lines #1]');
  await page.keyboard.press('ArrowUp');
  await typed(page, 'one');
  await newSession(page);
  await goTo(page, first);
  await typed(page, '[pasted 8 lines #1]');
  // What it stands for is there, too.
  await page.waitForTimeout(450);
  await page.keyboard.press('Enter');
  await page.locator('[aria-label="Prompt 2"] summary', { hasText: 'pasted 8 lines' }).waitFor();
});

test('a draft that was loaded and edited does not wait any more when it was said, and what others typed does', async (t) => {
  const scene = await Scene.start(t);
  const one = await scene.page();
  await say(one, 'hello');
  const url = one.url();
  const waiting = async () => (await (await one.request.get(new URL('/api/sessions', url).href, { headers: { 'X-Retake': '1' } })).json()).sessions[0].draft;
  const leave = async (text) => {
    const other = await scene.tab(one);
    await other.locator('[aria-label="Prompt 1"]').waitFor();
    await box(other).fill(text);
    await other.goto('about:blank');
    await one.bringToFront();
  };
  await leave('half a thought');
  await one.locator('.notice button', { hasText: 'Load it' }).click();
  await typed(one, 'half a thought');
  await say(one, 'a whole thought');
  assert.equal(await waiting(), null);
  // What is typed elsewhere after that is nobody's but theirs.
  await leave('half a thought');
  await one.locator('.notice button', { hasText: 'Load it' }).waitFor();
  await say(one, 'something else');
  assert.equal(await waiting(), 'half a thought');
});
