// What a model may write: none of it freezes the page, takes the rest of the conversation, or stays undecidable.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { test } from './case.mjs';
import { closeBrowser } from './scene.mjs';
import { play, prompted, replied } from './stage.mjs';

after(closeBrowser);

test('texts that were written to take for ever are shown at once', async (t) => {
  const texts = [
    `#${' '.repeat(40_000)}x\u2028x`,
    `a|b\n${' '.repeat(40_000)}-x`,
    `[a](${' '.repeat(40_000)}x y)`,
    `http://${'.'.repeat(40_000)}x`,
    'a line of a log\n'.repeat(20_000),
    `${'a|'.repeat(4_000)}\n${'-|'.repeat(4_000)}\n${'|\n'.repeat(8_000)}`,
    '```constructor\nfoo(1)\n```',
  ];
  for (const text of texts) {
    const { page, problems } = await play(t, { view: { entries: [prompted(1, 'go'), replied(2, text), prompted(3, 'more'), replied(4, 'the end of it')] } });
    await page.locator('.e-reply', { hasText: 'the end of it' }).waitFor();
    assert.deepEqual(problems, []);
    await page.context().close();
  }
});

test('only the last piece of a text that is coming is drawn again', async (t) => {
  for (const [first, line] of [['', 'line of a log that has no end\n'], ['```rust\n', 'let value = compute("text", 42); // a comment\n']]) {
    const { page, tell } = await play(t, { view: { entries: [prompted(1, 'go')], state: 'running' } });
    tell({ type: 'delta', turn: 'x', text: first + line.repeat(2_000) });
    await page.locator('.live .plain, .live .lines').first().waitFor();
    // Whatever changes from here on is counted, by where it is.
    await page.evaluate(() => {
      const pieces = [...document.querySelectorAll('.live .md > *, .live .lines')];
      globalThis.settled = pieces.filter((piece) => piece.parentElement.lastElementChild !== piece);
      globalThis.touched = 0;
      const observer = new MutationObserver((changes) => {
        for (const change of changes) if (globalThis.settled.some((piece) => piece.contains(change.target))) globalThis.touched += 1;
      });
      observer.observe(document.querySelector('.live'), { subtree: true, childList: true, characterData: true });
    });
    for (let times = 0; times < 20; times += 1) {
      tell({ type: 'delta', turn: 'x', text: line.repeat(50) });
      await page.waitForTimeout(20);
    }
    tell({ type: 'delta', turn: 'x', text: 'the very last' });
    await page.locator('.live', { hasText: 'the very last' }).waitFor();
    const [count, touched] = await page.evaluate(() => [globalThis.settled.length, globalThis.touched]);
    assert.ok(count > 0);
    assert.equal(touched, 0);
    assert.equal(await page.locator('.live').evaluate((live, text) => live.textContent.replaceAll('\n', '').includes(text), line.repeat(3_000).replaceAll('\n', '')), true);
    await page.context().close();
  }
});
