// What a phone's width must not take away.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { test } from './case.mjs';
import { closeBrowser, ready, say, Scene } from './scene.mjs';

after(closeBrowser);

test('sessions are begun, chosen and deleted from the list that covers the page', async (t) => {
  const scene = await Scene.start(t);
  const page = await scene.page({ width: 390, height: 700, touch: true });
  await say(page, 'in the first');
  const first = page.url();
  // Whatever the history is about to do is done by then.
  const settled = async (is) => {
    await page.locator('.sidebar.open').waitFor({ state: 'detached' });
    await page.waitForFunction(() => history.state?.covers !== true);
    await page.waitForURL((url) => is(url.href));
    await ready(page);
  };
  await page.locator('.burger').click();
  await page.locator('.new button').click();
  await settled((url) => url !== first);
  const second = page.url();
  await say(page, 'in the second');
  await page.locator('.burger').click();
  await page.locator('.pick', { hasText: 'in the first' }).click();
  await settled((url) => url === first);
  await page.locator('.e-prompt', { hasText: 'in the first' }).waitFor();
  // The way back leads to the session before.
  await page.goBack();
  await settled((url) => url === second);
  await page.locator('.burger').click();
  await page.locator('.sidebar li.here .delete').click();
  await page.locator('.sure .danger').click();
  await settled((url) => url !== second);
  assert.equal(await page.locator('.link[role=alert]').count(), 0);
  await page.locator('.e-prompt', { hasText: 'in the first' }).waitFor();
});
