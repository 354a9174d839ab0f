import { Encryption } from '@keelson/access';
import { noMetrics, systemClock } from '@keelson/core/runtime';
import { builtinKinds } from '@keelson/kinds';
import { createPinoLogger } from '@keelson/pino-logger';
import { loadKinds } from '../config/load-modules.ts';
import type { ServerOptions } from '../config/options.ts';
import { makeStore } from '../storage/open-storage.ts';
import { planStorage } from '../storage/storage-plan.ts';
import { verifyStore } from '../storage/verify-store.ts';

/**
 * Checks every configured store and prints the results. An embedded store is opened read-only and must not be in use.
 * Returns false when an object is damaged or a store cannot be read.
 */
export async function verifyStores(options: ServerOptions, print: (text: string) => void): Promise<boolean> {
  const kinds = [...builtinKinds, ...(await loadKinds(options.kinds))];
  const environment = { clock: systemClock, logger: createPinoLogger(options.logLevel), metrics: noMetrics };
  const { encryptionProviderConfig: configFile } = options;
  const encryption =
    configFile === undefined ? undefined : await Encryption.open({ configFile, kinds, ...environment });
  let sound = true;
  for (const plan of planStorage(options.storage, { reads: options.reads }, '--storage').stores) {
    const { store: plain, adapter } = await makeStore(plan, environment);
    const store = encryption?.wrap(plan.name, plain) ?? plain;
    const title = `store ${plan.name} (${adapter})`;
    if (!store.capabilities.durable) {
      print(`${title}: not durable, so there is nothing to verify\n`);
      continue;
    }
    try {
      await store.ready({ readOnly: true });
      const { head, compacted, objects, changes, encrypted, damages } = await verifyStore(store, kinds);
      const total = [...objects.values()].reduce((sum, count) => sum + count, 0);
      print(`${title}: ${total} objects at revision ${head}, ${changes} changes since revision ${compacted}\n`);
      for (const [name, count] of [...objects].sort(([a], [b]) => (a < b ? -1 : 1))) print(`  ${count} ${name}\n`);
      if (encrypted > 0)
        print(
          `  ${encrypted} objects are encrypted, and their content was not checked; use --encryption-provider-config\n`,
        );
      for (const damage of damages) print(`  damaged: ${damage}\n`);
      print(damages.length === 0 ? '  no damage found\n' : `  ${damages.length} damages found\n`);
      sound &&= damages.length === 0;
    } catch (error) {
      print(`${title}: ${(error as Error).message}\n`);
      sound = false;
    } finally {
      await store.close();
    }
  }
  await encryption?.stop();
  return sound;
}
