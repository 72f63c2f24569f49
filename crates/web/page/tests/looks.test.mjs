// How the page looks and is used: narrow, wide, dark, by keyboard alone, by those who do not see it. The README's pictures come from here.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after } from 'node:test';
import { test } from './case.mjs';
import { apply, choose, closeBrowser, frames, menu, ready, say, Scene } from './scene.mjs';

after(closeBrowser);
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** RETAKE_BLESS=1 makes them anew where the README shows them. */
const FOLDER = process.env.RETAKE_BLESS === '1' ? 'docs/img/' : 'target/pictures/';
const PICTURES = new URL(`../../../../${FOLDER}`, import.meta.url).pathname;
const config = '[permissions]\nallow = ["edits", "bash"]\n';
const files = {
  'cart.py': 'def total(items):\n    sum = 0\n    for item in items:\n        sum -= item.price\n    return sum\n\n\ndef count(items):\n    return len(items)\n\n\ndef names(items):\n    return [item.name for item in items]\n',
  'test_cart.py': 'from cart import total\n\n\ndef test_empty():\n    assert total([]) == 0\n',
};
const answers = [
  { thinks: 'The sign is wrong.', says: 'The sum goes the wrong way. I mend it.', calls: [['edit_file', { path: 'cart.py', old: 'sum -= item.price', new: 'sum += item.price' }]] },
  { says: 'Mended: `total` now **adds** the prices.\n\n```python\nfor item in items:\n    sum += item.price\n```' },
  { says: 'I add a discount and a test for it.', calls: [
    ['edit_file', { path: 'cart.py', old: 'def total(items):\n', new: 'def total(items, discount=0):\n' }],
    ['edit_file', { path: 'cart.py', old: '    return sum\n', new: '    return sum * (1 - discount)\n' }],
    ['bash', { command: 'echo "2 passed in 0.01s" | tee report.txt' }],
    ['todo', { items: [{ text: 'mend the sum', state: 'done' }, { text: 'write a test for discounts', state: 'active' }] }],
  ] },
  { says: 'Done. A discount of `0.1` takes ten per cent off:\n\n| items | discount | total |\n|---|--:|--:|\n| 3 | 0 | 30 |\n| 3 | 0.1 | 27 |\n' },
];
async function scene(t, options) {
  const one = await Scene.start(t, { files, answers, config });
  const page = await one.page(options);
  await say(page, 'mend the total in cart.py');
  await say(page, 'add a discount, with a test');
  return { scene: one, page };
}

/** Findings that keep people out. */
async function findings(page) {
  // The page forbids scripts that are not its own; this one comes through the debugger.
  await page.evaluate(AXE);
  const result = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  return result.violations.filter((one) => one.impact === 'serious' || one.impact === 'critical').map((one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => node.html.slice(0, 160)).join(' | ')}`);
}
const overflows = (page) => page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
async function picture(page, name) {
  // Where the test ran is nobody's business.
  await page.evaluate(() => document.querySelectorAll('.workspace bdi').forEach((one) => (one.textContent = '~/shop')));
  await page.screenshot({ path: `${PICTURES}web-${name}.png`, animations: 'disabled', caret: 'hide' });
}
mkdirSync(PICTURES, { recursive: true });

for (const dark of [false, true]) {
  test(`no serious findings, ${dark ? 'dark' : 'light'}`, async (t) => {
    const { page } = await scene(t, { dark });
    assert.deepEqual(await findings(page), []);
    await menu(page, 1);
    await page.locator('[role=menuitem] small', { hasText: 'restores' }).first().waitFor();
    assert.deepEqual(await findings(page), []);
    await page.keyboard.press('Escape');
    await choose(page, 1, 'Code and conversation');
    await page.locator('.plan .dl').first().waitFor();
    assert.deepEqual(await findings(page), []);
    await page.keyboard.press('Escape');
    for (const name of ['Timeline', '?']) {
      await page.locator('.top button', { hasText: name }).click();
      await page.locator('.side').waitFor();
      await frames(page);
      assert.deepEqual(await findings(page), []);
    }
  });
}

test('a question has no serious findings', async (t) => {
  const one = await Scene.start(t, { files, answers });
  const page = await one.page();
  await page.locator('#composer').fill('mend it');
  await page.keyboard.press('Enter');
  await page.locator('[role=alertdialog]').waitFor();
  assert.deepEqual(await findings(page), []);
  await picture(page, 'question');
});

test('pictures for the README', async (t) => {
  const { scene: one, page } = await scene(t, { width: 1280, height: 820 });
  await menu(page, 2);
  await page.locator('[role=menuitem] small', { hasText: 'restores' }).first().waitFor();
  await picture(page, 'menu');
  await page.keyboard.press('Escape');
  one.write('cart.py', `${one.read('cart.py')}\n# mine\n`);
  await choose(page, 2, 'Code and conversation');
  await page.locator('.conflict .dl').first().waitFor();
  await page.locator('.conflict label', { hasText: 'Merge' }).click();
  await page.locator('.conflict', { hasText: 'the others are kept' }).waitFor();
  await page.waitForFunction(() => document.querySelector('.plan button.primary')?.getAttribute('aria-disabled') === 'false');
  await picture(page, 'plan');
  await apply(page);
  await page.locator('.notice', { hasText: 'Rewound' }).waitFor();
  await picture(page, 'undo');
  await page.locator('.top button', { hasText: 'Timeline' }).click();
  await page.locator('.tree-row.left').waitFor();
  await page.emulateMedia({ colorScheme: 'dark' });
  await picture(page, 'timeline-dark');
});

test('dark follows the system, and the button overrides it', async (t) => {
  const { page } = await scene(t, { dark: true });
  const colour = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(await colour(), 'rgb(20, 23, 26)');
  await page.locator('[aria-label="Colours: auto"]').click();
  assert.equal(await colour(), 'rgb(255, 255, 255)');
  await page.reload();
  await ready(page);
  assert.equal(await colour(), 'rgb(255, 255, 255)');
  await page.locator('[aria-label="Colours: light"]').click();
  assert.equal(await colour(), 'rgb(20, 23, 26)');
});

test('a phone shows everything: nothing is cut off at 320 pixels', async (t) => {
  const { scene: one, page } = await scene(t, { width: 320, height: 640, touch: true });
  assert.equal(await overflows(page), false);
  await picture(page, 'phone');
  await page.locator('.burger').click();
  await page.locator('.sidebar.open').waitFor();
  assert.match(await page.locator('.sidebar').innerText(), /mend the total/);
  await page.locator('.sidebar .close').click();
  await choose(page, 2, 'Code and conversation');
  await page.locator('.plan .dl').first().waitFor();
  assert.equal(await overflows(page), false);
  await apply(page);
  assert.equal(one.read('report.txt'), null);
  await page.locator('.notice button.primary', { hasText: 'Undo' }).click();
  await page.locator('[aria-label="Prompt 2"]').waitFor();
  await page.locator('.top button', { hasText: 'Timeline' }).click();
  await page.locator('.tree-row').first().waitFor();
  assert.equal(await overflows(page), false);
});

test('a very large screen keeps lines readable', async (t) => {
  const { page } = await scene(t, { width: 3840, height: 2160 });
  assert.equal(await overflows(page), false);
  const width = await page.locator('.e-reply .body').first().evaluate((body) => body.getBoundingClientRect().width);
  assert.ok(width < 1_300, String(width));
});

test('nothing moves for those who asked for that', async (t) => {
  const { page } = await scene(t, { reduced: true, width: 700 });
  const moving = await page.evaluate(() => [...document.querySelectorAll('*')].filter((one) => {
    const style = getComputedStyle(one);
    return style.animationName !== 'none' || parseFloat(style.transitionDuration) > 0;
  }).length);
  assert.equal(moving, 0);
});

test('everything can be done without a mouse', async (t) => {
  const { scene: one, page } = await scene(t);
  const focus = () => page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.id);
  await page.keyboard.press('Alt+ArrowUp');
  assert.equal(await focus(), 'Prompt 2');
  await page.keyboard.press('k');
  assert.equal(await focus(), 'Prompt 1');
  await page.keyboard.press('j');
  assert.equal(await focus(), 'Prompt 2');
  await page.keyboard.press('r');
  await page.locator('[role=menu]').waitFor();
  await page.keyboard.press('Escape');
  assert.match(await focus(), /^Rewind to before prompt 2/);
  await page.keyboard.press('Enter');
  await page.locator('[role=menuitem] small', { hasText: 'restores' }).first().waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('.plan button.primary')?.getAttribute('aria-disabled') === 'false');
  await page.keyboard.press('Enter');
  await page.locator('[aria-label="Prompt 2"]').waitFor({ state: 'detached' });
  await page.locator('.plan').waitFor({ state: 'detached' });
  assert.equal(one.read('report.txt'), null);
  assert.equal(await focus(), 'Prompt');
  await page.keyboard.press('Control+A');
  await page.keyboard.press('Delete');
  await page.keyboard.type('/undo');
  await page.keyboard.press('Enter');
  await page.locator('[aria-label="Prompt 2"]').waitFor();
  // Esc Esc on an empty composer is the timeline, from which one comes back to the composer.
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await page.locator('.tree-row').first().waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.locator('[role=menu]').waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await page.locator('.side').waitFor({ state: 'detached' });
  assert.equal(await focus(), 'Prompt');
  await page.keyboard.type('/help');
  await page.keyboard.press('Enter');
  await page.locator('#side-title', { hasText: 'Keys' }).waitFor();
});
