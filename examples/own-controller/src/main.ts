import { ConfigMap } from '@keelson/kinds';
import { createControlPlane } from 'keelson';
import { Website } from './website.ts';
import { websiteController } from './website-controller.ts';

const plane = await createControlPlane({ kinds: [Website], controllers: ['api', websiteController] });
const websites = plane.client(Website).namespace('default');
const maps = plane.client(ConfigMap).namespace('default');

await websites.create({ metadata: { name: 'home' }, spec: { title: 'Hello' } });
for await (const { type, object } of websites.watch()) {
  if (type === 'BOOKMARK' || object.status?.observedGeneration !== object.metadata.generation) continue;
  console.log(object.spec.title, object.status?.conditions?.[0]?.type, (await maps.get('home-page')).data);
  if (object.spec.title === 'Welcome') break;
  await websites.patch('home', 'merge', { spec: { title: 'Welcome' } });
}
await plane.close();
