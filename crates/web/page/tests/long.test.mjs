// A session of 10,000 entries: how smoothly it scrolls, and that whoever reads keeps their place. It is played by a server of the
// test's own, since nobody wants to wait for so many turns.
import assert from 'node:assert/strict';
import { readFileSync, existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { after, test } from 'node:test';
import { closeBrowser, theBrowser } from './scene.mjs';

after(closeBrowser);
const dist = new URL('../dist', import.meta.url).pathname;
const TURNS = 2_500;

function entries() {
  const all = [];
  const add = (body) => all.push({ id: (all.length + 1).toString(16).padStart(20, '0'), parent: all.at(-1)?.id ?? null, at: 1_700_000_000_000 + all.length * 1_000, ...body });
  const usage = { input: 10, output: 5 };
  for (let turn = 1; turn <= TURNS; turn += 1) {
    add({ type: 'prompt', parts: [{ type: 'text', text: `prompt ${turn}\n${'and more '.repeat(turn % 17)}` }] });
    add({ type: 'reply', model: 'm', usage, stop: 'calls', blocks: [{ type: 'text', text: `Answer **${turn}**.\n\n${'Some words of it. '.repeat(turn % 29)}` }, { type: 'call', id: `c${turn}`, name: 'edit_file', arguments: JSON.stringify({ path: 'src/a.rs', old: `let a = ${turn};`, new: `let a = ${turn + 1};\nlet b = "x";` }) }] });
    add({ type: 'tool_result', call: `c${turn}`, title: 'edit src/a.rs', outcome: 'done', parts: [{ type: 'text', text: 'ok' }], details: { lines: [turn] } });
    add({ type: 'reply', model: 'm', usage, stop: 'done', blocks: [{ type: 'text', text: `Done:\n\n\`\`\`rust\nfn f${turn}() -> u32 { ${turn} }\n\`\`\`\n\n- one\n- two` }] });
  }
  return all;
}

/** A server that tells one view, and then what the test wants. */
async function play(t) {
  const view = { seq: 1, session: 'aaaa', workspace: '/w', model: 'x/m', entries: entries(), draft: [], state: 'running', coming: { text: '', thinking: '' }, calls: [], questions: [], held: 0, jobs: [] };
  const streams = new Set();
  let seq = 1;
  const tell = (kind) => {
    seq += 1;
    for (const stream of streams) stream.write(`event: event\nid: ${seq}\ndata: ${JSON.stringify({ seq, ...kind })}\n\n`);
  };
  const server = createServer((request, response) => {
    const path = new URL(request.url, 'http://x').pathname;
    if (path.endsWith('/events')) {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      response.write(`event: view\nid: 1\ndata: ${JSON.stringify(view)}\n\n`);
      streams.add(response);
      return;
    }
    if (path === '/api/sessions') return void response.end(JSON.stringify({ workspace: '/w', sessions: [{ session: 'aaaa', title: 'long', at: 0, prompts: TURNS, live: true, forked_from: null, draft: null }] }));
    if (path.startsWith('/api')) return void response.end(JSON.stringify({ id: '1', ok: { type: 'store', bytes: 1, budget: 2 } }));
    const file = `${dist}${path === '/' ? '/index.html' : path}`;
    if (!existsSync(file)) return void response.writeHead(404).end();
    response.writeHead(200, { 'Content-Type': file.endsWith('.js') ? 'text/javascript' : file.endsWith('.css') ? 'text/css' : 'text/html' });
    return void response.end(readFileSync(file));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const context = await (await theBrowser()).newContext({ viewport: { width: 1280, height: 800 } });
  t.after(async () => {
    await context.close();
    streams.forEach((stream) => stream.destroy());
    server.close();
  });
  const page = await context.newPage();
  const begun = Date.now();
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.locator(`[aria-label="Prompt ${TURNS}"]`).waitFor();
  return { page, tell, opened: Date.now() - begun };
}

test('10,000 entries: few are on the page, and nobody ever sees past their edge while scrolling', async (t) => {
  const { page, opened } = await play(t);
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
  const { page, tell } = await play(t);
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
    if (times % 10 === 0) await page.waitForTimeout(30);
    if (times === 30) tell({ type: 'appended', entry: { id: 'f'.repeat(20), parent: null, at: 0, type: 'note', about: [], text: 'a note' } });
  }
  await page.waitForTimeout(300);
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
  const { page } = await play(t);
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
