import { LmdbStore } from '@keelson/storage-lmdb';
import { registerContractOn } from '../../src/client-contract.ts';
import { memoryDirectory, removeDirectory } from '../../src/keelson-process.ts';

registerContractOn('lmdb', async () => {
  const path = await memoryDirectory();
  return { store: new LmdbStore({ path }), remove: () => removeDirectory(path) };
});
