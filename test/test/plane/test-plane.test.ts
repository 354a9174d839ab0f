import { join } from 'node:path';
import { ConfigMap } from '@keelson/kinds';
import { MemoryStore } from '@keelson/storage-memory';
import { startTestPlane } from '@keelson/testing';
import test from 'ava';
import { removeDirectory, temporaryDirectory } from '../../src/keelson-process.ts';

test('startTestPlane uses the given storage: objects remain after the plane closes on LMDB, and a store can be an instance', async (t) => {
  const home = await temporaryDirectory();
  t.teardown(() => removeDirectory(home));
  const storage = `lmdb:${join(home, 'store')}`;
  const first = await startTestPlane({ storage });
  await first
    .client(ConfigMap)
    .namespace('default')
    .create({ metadata: { name: 'kept' }, data: { a: 'b' } });
  await first.close();
  const second = await startTestPlane({ storage });
  t.deepEqual((await second.client(ConfigMap).namespace('default').get('kept')).data, { a: 'b' });
  await second.close();
  const third = await startTestPlane({ storage: new MemoryStore(), controllers: false });
  t.deepEqual((await third.client(ConfigMap).namespace('default').list()).items, []);
  await third.close();
  await t.throwsAsync(startTestPlane({ storage: 'memry:' }), {
    name: 'UsageError',
    message: /^storage "memry:" must begin with one of .*did you mean memory\?/,
  });
});
