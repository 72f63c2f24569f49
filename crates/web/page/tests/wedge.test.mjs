// What goes on in one place does not stop another, and what is not answered is said.
import assert from 'node:assert/strict';
import { unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { apply, choose, closeBrowser, ready, say, Scene } from './scene.mjs';

after(closeBrowser);
const config = '[permissions]\nallow = ["edits", "bash"]\n';
const write = (path, content) => ({ calls: [['write_file', { path, content }]] });

test('a file that only the user changed is restored as it was before', async (t) => {
  const scene = await Scene.start(t, { config, files: { 'mine.txt': 'mine\n', 'gone.txt': 'gone\n' }, answers: [write('a.txt', 'a\n'), { says: 'Done.' }] });
  const page = await scene.page();
  await say(page, 'one');
  scene.write('mine.txt', 'spoilt\n');
  unlinkSync(join(scene.workspace, 'gone.txt'));
  const compare = async () => {
    await page.locator('.top button', { hasText: 'Timeline' }).click();
    await page.locator('.tree-row .ab button', { hasText: 'from' }).first().click();
    await page.locator('.compare button.primary').click();
  };
  for (const [name, text] of [['mine.txt', 'mine\n'], ['gone.txt', 'gone\n']]) {
    await compare();
    await page.locator('.with-button', { has: page.locator('.path', { hasText: name }) }).locator('.only-this').click();
    await page.locator('#side-title', { hasText: `Restore ${name} as it was before 1` }).waitFor();
    await apply(page);
    await page.locator('.notice', { hasText: `Restored ${name}` }).waitFor();
    assert.equal(scene.read(name), text);
  }
  // What is as it was is not offered to be restored.
  await compare();
  await page.locator('.side .only-this').waitFor();
  unlinkSync(join(scene.workspace, 'a.txt'));
  await page.locator('.side .only-this').click();
  await page.locator('.plan .warning', { hasText: 'nothing to restore' }).waitFor();
});

test('what is compared is what is restored', async (t) => {
  const edit = (at) => ({ calls: [['edit_file', { path: 'a.txt', old: `v${at}`, new: `v${at + 1}` }]] });
  const answers = [0, 1, 2].flatMap((at) => [edit(at), { says: 'Done.' }]);
  const scene = await Scene.start(t, { config, files: { 'a.txt': 'v0\n' }, answers });
  const page = await scene.page();
  for (const text of ['p one', 'p two', 'p three']) await say(page, text);
  await page.locator('.top button', { hasText: 'Timeline' }).click();
  const from = (text) => page.locator('.tree-row', { hasText: text }).locator('.ab button', { hasText: 'from' }).click();
  await from('p one');
  await page.locator('.compare button.primary').click();
  await page.locator('.side .dl', { hasText: 'v0' }).waitFor();
  await from('p three');
  assert.equal(await page.locator('.side .only-this').count(), 0);
  await page.locator('.compare button.primary').click();
  await page.locator('.side .dl', { hasText: 'v2' }).waitFor();
  await page.locator('.side .only-this').click();
  await page.locator('#side-title', { hasText: 'as it was before 3' }).waitFor();
  await apply(page);
  assert.equal(scene.read('a.txt'), 'v2\n');
});
