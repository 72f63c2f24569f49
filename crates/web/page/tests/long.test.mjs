// A session of 10,000 entries: how smoothly it scrolls, and that whoever reads keeps their place. It is played, since nobody wants to wait for so many turns.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { test } from './case.mjs';
import { closeBrowser, frames } from './scene.mjs';
import { entry, play, prompted, replied } from './stage.mjs';

after(closeBrowser);
const TURNS = 2_500;

function entries() {
  const all = [];
  const next = () => all.length + 1;
  const usage = { input: 10, output: 5 };
  for (let turn = 1; turn <= TURNS; turn += 1) {
    all.push(prompted(next(), `prompt ${turn}\n${'and more '.repeat(turn % 17)}`));
    const edit = { type: 'call', id: `c${turn}`, name: 'edit_file', arguments: JSON.stringify({ path: 'src/a.rs', old: `let a = ${turn};`, new: `let a = ${turn + 1};\nlet b = "x";` }) };
    all.push(entry(next(), { type: 'reply', model: 'm', usage, stop: 'calls', blocks: [{ type: 'text', text: `Answer **${turn}**.\n\n${'Some words of it. '.repeat(turn % 29)}` }, edit] }));
    all.push(entry(next(), { type: 'tool_result', call: `c${turn}`, title: 'edit src/a.rs', outcome: 'done', parts: [{ type: 'text', text: 'ok' }], details: { lines: [turn] } }));
    all.push(replied(next(), `Done:\n\n\`\`\`rust\nfn f${turn}() -> u32 { ${turn} }\n\`\`\`\n\n- one\n- two`));
  }
  return all;
}

async function playLong(t) {
  const played = await play(t, { view: { entries: entries(), state: 'running' } });
  await played.page.locator(`[aria-label="Prompt ${TURNS}"]`).waitFor();
  return played;
}

test('10,000 entries: few are on the page, and nobody ever sees past their edge while scrolling', async (t) => {
  const { page, opened } = await playLong(t);
  assert.ok((await page.locator('.row').count()) < 60);
  const atEnd = await page.evaluate(() => {
    const box = document.querySelector('.scroll');
    return box.scrollHeight - box.scrollTop - box.clientHeight;
  });
  assert.ok(atEnd < 2, `${atEnd} pixels from the end`);
  // Up by a part of the screen in every frame, as with a wheel; then long jumps.
  const measure = (step) =>
    page.evaluate(
      ([by]) =>
        new Promise((resolve) => {
          const box = document.querySelector('.scroll');
          const gaps = [];
          let last = performance.now();
          let blank = 0;
          let frames = 0;
          const frame = (now) => {
            gaps.push(now - last);
            last = now;
            box.scrollTop -= by;
            const rows = [...document.querySelectorAll('.row')].map((row) => row.getBoundingClientRect());
            const { top, bottom } = box.getBoundingClientRect();
            if (!rows.some((row) => row.top <= top + 1) || !rows.some((row) => row.bottom >= bottom - 1)) blank += 1;
            frames += 1;
            if (frames < 240) requestAnimationFrame(frame);
            else resolve({ gaps: gaps.slice(5).sort((a, b) => a - b), blank });
          };
          requestAnimationFrame(frame);
        }),
      [step],
    );
  for (const step of [60, 400]) {
    const { gaps, blank } = await measure(step);
    // How long frames take is told for BENCHMARKS.md; it decides nothing on a machine that does other things too.
    const at = (part) => gaps[Math.floor(gaps.length * part)].toFixed(1);
    const dropped = gaps.filter((gap) => gap > 25).length;
    console.log(`opened in ${opened} ms; ${step} px a frame: median ${at(0.5)} ms, 95 % ${at(0.95)} ms, longest ${at(0.999)} ms, ${dropped} of ${gaps.length} over 25 ms, ${blank} with an empty edge`);
    assert.ok(blank <= 2, `${blank} frames had an empty edge`);
  }
});

test('whoever has scrolled up keeps their place while text streams in', async (t) => {
  const { page, tell } = await playLong(t);
  await page.mouse.move(700, 300);
  for (let times = 0; times < 12; times += 1) await page.mouse.wheel(0, -350);
  await page.locator('.to-end').waitFor();
  await page.waitForTimeout(400);
  const place = () =>
    page.evaluate(() => {
      const box = document.querySelector('.scroll').getBoundingClientRect();
      const row = [...document.querySelectorAll('.row')].find((one) => one.getBoundingClientRect().bottom > box.top + 1);
      return [row.dataset.key, Math.round(row.getBoundingClientRect().top)];
    });
  const before = await place();
  for (let times = 0; times < 60; times += 1) {
    tell({ type: 'delta', turn: 'x', text: `More words, line ${times}.\n\n` });
    if (times % 10 === 0) await frames(page, 2);
    if (times === 30) tell({ type: 'appended', entry: { id: 'f'.repeat(20), parent: null, at: 0, type: 'note', about: [], text: 'a note' } });
  }
  // The last words may be below what is on the page; an event after them is seen wherever one is.
  tell({ type: 'warning', text: 'all is told' });
  await page.locator('.notice', { hasText: 'all is told' }).waitFor();
  await frames(page);
  assert.deepEqual(await place(), before);
  await page.locator('.to-end').click();
  await page.locator('.live', { hasText: 'line 59' }).waitFor();
  // Now the end is kept.
  tell({ type: 'delta', turn: 'x', text: 'The very last.\n\n' });
  await page.locator('.live', { hasText: 'The very last.' }).waitFor();
  const left = await page.evaluate(() => {
    const box = document.querySelector('.scroll');
    return box.scrollHeight - box.scrollTop - box.clientHeight;
  });
  assert.ok(left < 2, `${left} pixels from the end`);
});

test('every prompt is reached by keys, wherever it is', async (t) => {
  const { page } = await playLong(t);
  await page.locator('.scroll').focus();
  await page.keyboard.press('g');
  await page.locator('[aria-label="Prompt 1"]').waitFor();
  await page.keyboard.press('Shift+G');
  await page.locator(`[aria-label="Prompt ${TURNS}"]`).waitFor();
  for (let times = 0; times < 8; times += 1) await page.keyboard.press('k');
  await page.waitForFunction((wanted) => document.activeElement?.getAttribute('aria-label') === wanted, `Prompt ${TURNS - 7}`);
  const top = await page.evaluate(() => document.activeElement.getBoundingClientRect().top);
  assert.ok(top > 0 && top < 700, String(top));
});
