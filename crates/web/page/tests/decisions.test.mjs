// What has to be decided or known before something goes back, and what must not be lost.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, renameSync } from 'node:fs';
import { after } from 'node:test';
import { test } from './case.mjs';
import { apply, choose, closeBrowser, frames, menu, ready, say, Scene } from './scene.mjs';

after(closeBrowser);
const config = '[permissions]\nallow = ["edits", "bash"]\n';
const edit = (from, to) => ({ calls: [['edit_file', { path: 'a.txt', old: from, new: to }]] });
const answers = [edit('zero', 'one'), { says: 'First.' }, { calls: [['bash', { command: 'echo b > b.txt; echo c > c.txt' }]] }, { says: 'Second.' }, { says: 'Third.' }];
const start = (t, options = {}) => Scene.start(t, { files: { 'a.txt': 'zero\n' }, answers, config, ...options });

test('an undo that meets somebody else’s change asks first', async (t) => {
  const scene = await start(t);
  const page = await scene.page();
  await say(page, 'do one');
  await choose(page, 1, 'Code only');
  await apply(page);
  scene.write('a.txt', 'mine\n');
  await page.locator('.notice button.primary', { hasText: 'Undo' }).click();
  await page.locator('.conflict').waitFor();
  assert.equal(scene.read('a.txt'), 'mine\n');
  await page.locator('.conflict label', { hasText: 'Overwrite' }).click();
  await page.locator('.conflict', { hasText: 'is overwritten' }).waitFor();
  await apply(page);
  assert.equal(scene.read('a.txt'), 'one\n');
});

test('another branch and what was not captured are told, and the branch has to be confirmed', async (t) => {
  const scene = await start(t);
  const git = (...args) => execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: scene.workspace, env: scene.env, stdio: 'pipe' });
  git('init', '-q', '-b', 'main');
  git('add', '-A');
  git('commit', '-qm', 'first');
  execFileSync('mkfifo', ['pipe'], { cwd: scene.workspace });
  const page = await scene.page();
  await say(page, 'do one');
  git('switch', '-qc', 'other');
  await choose(page, 1, 'Code only');
  await page.locator('.branch', { hasText: 'other' }).waitFor();
  await page.locator('.listed', { hasText: 'Not captured at that point (1):' }).waitFor();
  const button = page.locator('.plan button.primary');
  assert.equal(await button.getAttribute('aria-disabled'), 'true');
  await page.locator('.branch input').check();
  await apply(page);
  assert.equal(scene.read('a.txt'), 'zero\n');
});

test('one file of several goes back alone from the plan', async (t) => {
  const scene = await start(t);
  const page = await scene.page();
  await say(page, 'do one');
  await say(page, 'make two');
  await choose(page, 2, 'Code and conversation');
  await page.locator('.with-button', { hasText: 'b.txt' }).locator('.only-this').click();
  await page.locator('.only', { hasText: 'Only b.txt' }).waitFor();
  await page.locator('.plan button.primary', { hasText: 'Delete b.txt' }).waitFor();
  await apply(page);
  assert.deepEqual([scene.read('a.txt'), scene.read('b.txt'), scene.read('c.txt')], ['one\n', null, 'c\n']);
  assert.equal(await page.locator('.e-prompt').count(), 2);
});

test('what is typed outlives a reload', async (t) => {
  const scene = await start(t);
  const page = await scene.page();
  await say(page, 'do one');
  await page.locator('#composer').fill('half a thought');
  await page.reload();
  await ready(page);
  await page.waitForFunction(() => document.querySelector('#composer')?.value === 'half a thought');
});

test('a question is stopped with Esc', async (t) => {
  const scene = await start(t, { config: '' });
  const page = await scene.page();
  await page.locator('#composer').fill('do one');
  await page.keyboard.press('Enter');
  await page.locator('[role=alertdialog]').waitFor();
  await page.locator('.stop').waitFor();
  await page.keyboard.press('Escape');
  await page.locator('[role=alertdialog]').waitFor({ state: 'detached' });
  assert.equal(scene.read('a.txt'), 'zero\n');
  await page.locator('.status .state', { hasText: /stopped|ready/ }).waitFor();
});

test('a session that is not there is said, and another one begun', async (t) => {
  const scene = await start(t);
  const page = await scene.page();
  await say(page, 'do one');
  await page.goto(new URL('/#/s/00000000000000000000', scene.url).href);
  const said = page.locator('.link[role=alert]', { hasText: '0000' });
  await said.waitFor();
  await said.locator('button').click();
  await page.locator('.welcome').waitFor();
  await ready(page);
});

test('a tab that nobody sees lets go of its connection, and gets what it missed', async (t) => {
  const scene = await start(t);
  const page = await scene.page();
  await say(page, 'do one');
  const other = await scene.page();
  await other.clock.install();
  await other.goto(page.url());
  await other.reload();
  await other.clock.runFor(500);
  await other.locator('[aria-label="Prompt 1"]').waitFor();
  const hide = (is) => other.evaluate((hidden) => {
    Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  }, is);
  await hide(true);
  await other.clock.runFor(61_000);
  await say(page, 'make two');
  await other.clock.runFor(2_000);
  assert.equal(await other.locator('[aria-label="Prompt 2"]').count(), 0);
  await hide(false);
  while ((await other.locator('.e-reply', { hasText: 'Second.' }).count()) === 0) await other.clock.runFor(100);
  assert.equal(await other.locator('.e-reply', { hasText: 'Second.' }).count(), 1);
});

test('a rewind is made once, however often one asks, and its panel can be closed meanwhile', async (t) => {
  const scene = await start(t);
  const page = await scene.page();
  await say(page, 'do one');
  let applied = 0;
  let release;
  const held = new Promise((resolve) => (release = resolve));
  await page.route('**/commands', async (route) => {
    if (JSON.parse(route.request().postData()).command.type === 'apply') {
      applied += 1;
      await held;
    }
    await route.continue();
  });
  await choose(page, 1, 'Code only');
  const button = page.locator('.plan button.primary');
  await page.waitForFunction(() => document.querySelector('.plan button.primary')?.getAttribute('aria-disabled') === 'false');
  await button.evaluate((one) => {
    one.click();
    one.click();
  });
  await page.locator('.plan button.primary', { hasText: 'in progress' }).waitFor();
  await button.click({ force: true });
  await page.keyboard.press('Enter');
  await page.keyboard.press('Escape');
  await page.locator('.plan').waitFor({ state: 'detached' });
  release();
  await page.locator('.notice', { hasText: 'Rewound the files' }).waitFor();
  assert.equal(applied, 1);
  assert.equal(scene.read('a.txt'), 'zero\n');
});

test('a directory that is gone is said in the menu and in the plan, with a way to try again', async (t) => {
  const scene = await start(t);
  const page = await scene.page();
  await say(page, 'do one');
  renameSync(scene.workspace, `${scene.workspace}.away`);
  t.after(() => existsSync(`${scene.workspace}.away`) && renameSync(`${scene.workspace}.away`, scene.workspace));
  const items = await menu(page, 1);
  const alone = items.locator('[role=menuitem]', { hasText: 'Conversation only' });
  await page.waitForFunction(() => !document.querySelector('[role=menu]')?.innerText.includes('planning'));
  const text = await alone.innerText();
  if ((await alone.getAttribute('aria-disabled')) === 'true') {
    assert.doesNotMatch(text, /planning/);
    await page.keyboard.press('Escape');
  } else {
    await alone.click();
    await page.locator('.summary-line', { hasText: 'files stay as they are' }).or(page.locator('.plan button', { hasText: 'Try again' })).first().waitFor();
  }
});

test('what a turn changed is told below it, and shown', async (t) => {
  const scene = await start(t);
  const page = await scene.page();
  await say(page, 'do one');
  await say(page, 'make two');
  await page.locator('.turn-changed').nth(1).waitFor();
  const told = await page.locator('.turn-changed').allInnerTexts();
  assert.deepEqual(told.map((text) => text.replace(/\s+/g, ' ')), ['1 file changed show diff', '2 files added show diff']);
  await page.locator('.turn-changed button').nth(1).click();
  await page.locator('#side-title', { hasText: 'What turn 2 changed' }).waitFor();
});

test('notices take room of their own, one at a time', async (t) => {
  const scene = await start(t);
  const page = await scene.page();
  await say(page, 'do one');
  for (const text of ['/draft', '/jobs', '/model']) {
    await page.locator('#composer').fill(text);
    await page.keyboard.press('Escape');
    await page.locator('#composer').press('Enter');
  }
  await page.locator('.notice', { hasText: 'PROVIDER/NAME' }).waitFor();
  assert.equal(await page.locator('.notice').count(), 1);
  const [list, bar] = [await page.locator('.scroll').boundingBox(), await page.locator('.notice').boundingBox()];
  assert.ok(list.y + list.height <= bar.y + 1, 'the notice lies over the conversation');
  // Names are set apart, without the ticks.
  assert.doesNotMatch(await page.locator('.notice').innerText(), /`/);
  await page.locator('.notice button', { hasText: '2 older' }).click();
  await page.locator('.notice', { hasText: 'No background jobs' }).waitFor();
});

test('the first way back leads out, and that of a phone closes what covers the conversation', async (t) => {
  const scene = await start(t);
  const page = await scene.page({ width: 380, height: 700, touch: true });
  assert.match(page.url(), /#\/s\//);
  await say(page, 'do one');
  const address = page.url();
  await page.locator('.top button', { hasText: 'Timeline' }).click();
  await page.locator('.side').waitFor();
  await page.goBack();
  await page.locator('.side').waitFor({ state: 'detached' });
  assert.equal(page.url(), address);
  await page.locator('.burger').click();
  await page.locator('.sidebar.open').waitFor();
  await page.goBack();
  await page.locator('.sidebar.open').waitFor({ state: 'detached' });
  // Closed by its own button it leaves nothing behind.
  await page.locator('.top button', { hasText: 'Timeline' }).click();
  await page.locator('.side [aria-label=Close]').click();
  // The page gives back the place in the history that the panel had, and the browser is slow to do so.
  await page.waitForFunction(() => history.state?.covers !== true);
  await page.goBack();
  assert.doesNotMatch(page.url(), /\/$/);
});

test('the prompt that was acted on stays in sight, and the end is known as such', async (t) => {
  const scene = await start(t, { answers: [{ says: `${'Some words of an answer. '.repeat(60)}\n\n`.repeat(3) }] });
  const page = await scene.page({ width: 1280, height: 700 });
  for (const text of ['one', 'two', 'three', 'four']) await say(page, text);
  await page.keyboard.press('Alt+ArrowUp');
  await page.keyboard.press('k');
  await page.keyboard.press('k');
  const prompt = page.locator('[aria-label="Prompt 2"]');
  await choose(page, 2, 'Conversation only');
  await page.locator('.plan').waitFor();
  await frames(page);
  const isSeen = async () => {
    const [box, list] = [await prompt.boundingBox(), await page.locator('.scroll').boundingBox()];
    return Boolean(box) && box.y >= list.y - 1 && box.y < list.y + list.height - 20;
  };
  assert.ok(await isSeen(), 'with the plan open');
  await page.locator('.plan button', { hasText: 'Cancel' }).click();
  await page.locator('.plan').waitFor({ state: 'detached' });
  await frames(page);
  assert.ok(await isSeen(), 'with the plan closed');
  await page.keyboard.press('Escape');
  await page.locator('.to-end').click();
  await page.locator('.to-end').waitFor({ state: 'detached' });
  await choose(page, 4, 'Conversation only');
  await page.locator('.plan').waitFor();
  await page.locator('.plan button', { hasText: 'Cancel' }).click();
  await page.locator('.plan').waitFor({ state: 'detached' });
  await frames(page);
  const left = await page.evaluate(() => {
    const box = document.querySelector('.scroll');
    return box.scrollHeight - box.scrollTop - box.clientHeight;
  });
  assert.equal(await page.locator('.to-end').count(), left > 4 ? 1 : 0, String(left));
});

test('the only hit of the timeline is opened by Enter, and words far away are found', async (t) => {
  const scene = await start(t, { answers: [{ says: `${'Some words of an answer. '.repeat(60)}\n\n`.repeat(3) }] });
  const page = await scene.page({ width: 1280, height: 500 });
  for (const [at, text] of ['about zebras', 'two', 'three', 'four', 'five'].entries()) {
    await page.locator('#composer').fill(text);
    await page.locator('#composer').press('Enter');
    // The answer may have pushed the prompt out of sight by the time that one looks.
    await page.locator('.sidebar', { hasText: at === 0 ? '1 prompt' : `${at + 1} prompts` }).waitFor();
    await ready(page);
  }
  await page.locator('.top button', { hasText: 'Timeline' }).click();
  await page.locator('.tree-row').nth(4).waitFor();
  await page.locator('.timeline input').fill('zebras');
  await page.waitForFunction(() => document.querySelectorAll('.tree-row').length === 1);
  await page.locator('.timeline input').press('Enter');
  await page.locator('.menu-title', { hasText: 'about zebras' }).waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await page.locator('.side').waitFor({ state: 'detached' });
  await page.keyboard.press('Alt+ArrowUp');
  await page.keyboard.press('/');
  await page.locator('.find input').fill('zebra');
  await page.locator('.row.pointed', { hasText: 'about zebras' }).waitFor();
  assert.equal(await page.locator('.find [role=status]').innerText(), '1 of 1');
  await page.keyboard.press('Escape');
  await page.locator('.find').waitFor({ state: 'detached' });
});
