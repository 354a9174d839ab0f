import { ConfigMap } from '@keelson/kinds';
import { createControlPlane } from 'keelson';
import { Rollout, Site } from './rollout.ts';
import { RolloutController } from './rollout-controller.ts';

// Two sites, which would be on machines of their own, and the hub.
const sites = await Promise.all(['north', 'south'].map(() => createControlPlane()));
const controller = new RolloutController();
const hub = await createControlPlane({ kinds: [Site, Rollout], controllers: ['api', controller] });
for (const [index, site] of sites.entries()) {
  const { url } = await site.listen();
  await hub.client(Site).create({ metadata: { name: `site-${index}` }, spec: { server: url } });
}
await hub.client(Rollout).create({ metadata: { name: 'opening-hours' }, spec: { data: { monday: '9-17' } } });

for await (const { type, object } of hub.client(Rollout).watch())
  if (type !== 'BOOKMARK' && object.status?.ready === sites.length) break;
for (const site of sites) console.log((await site.client(ConfigMap).namespace('default').get('opening-hours')).data);
controller.close();
await Promise.all([hub, ...sites].map((plane) => plane.close()));
