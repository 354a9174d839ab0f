import { LmdbStore } from '@keelson/storage-lmdb';
import { registerContractOn } from '../../src/client-contract.ts';
import { removeDirectory, temporaryDirectory } from '../../src/keelson-process.ts';

registerContractOn('lmdb', async () => {
  const path = await temporaryDirectory();
  return { store: new LmdbStore({ path }), remove: () => removeDirectory(path) };
});
