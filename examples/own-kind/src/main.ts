import { createControlPlane } from 'keelson';
import { Backup } from './backup.ts';

const plane = await createControlPlane({ kinds: [Backup] });
const backups = plane.client(Backup).namespace('default');

await backups.create({ metadata: { name: 'nightly' }, spec: { database: 'orders' } });
await backups
  .create({ metadata: { name: 'broken' }, spec: { database: '', keep: 0 } })
  .catch((error: Error) => console.log(error.message));

for await (const { type, object } of backups.watch({ timeoutSeconds: 1 })) {
  if (type !== 'BOOKMARK') console.log(type, object.metadata.name, object.spec.keep);
}
await plane.close();
