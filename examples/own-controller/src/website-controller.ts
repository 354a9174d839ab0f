import {
  addFinalizer,
  type ControllerDefinition,
  ownerReference,
  patchStatus,
  type ReconcileRun,
  removeFinalizer,
  withCondition,
} from '@keelson/controller-kit';
import { ConfigMap } from '@keelson/kinds';
import { Website } from './website.ts';

const finalizer = 'web.example.com/sitemap';

/** Keeps a config map with the page of each website, and a line per website in the config map `sitemap`. */
export const websiteController: ControllerDefinition<Website> = {
  name: 'website-controller',
  kind: Website,
  owns: [ConfigMap],
  reconcile: async (read, run) => {
    const { namespace = '', name, deletionTimestamp } = read.metadata;
    if (deletionTimestamp !== undefined) {
      await setLine(run, namespace, name, null);
      await removeFinalizer(run, Website, read, finalizer);
      return;
    }
    const website = await addFinalizer(run, Website, read, finalizer);
    const maps = run.client.resource(ConfigMap).namespace(namespace);
    const page = `${name}-page`;
    const data = { 'index.html': `<h1>${website.spec.title}</h1>\n` };
    const known = run.read(ConfigMap).get(`${namespace}/${page}`);
    if (known === undefined) {
      await maps.create({ metadata: { name: page, ownerReferences: [ownerReference(Website, website)] }, data });
      run.event(website, 'Normal', 'Published', `Created config map ${page}`);
    } else if (known.data?.['index.html'] !== data['index.html']) await maps.patch(page, 'merge', { data });
    await setLine(run, namespace, name, website.spec.title);
    const ready = { type: 'Ready', status: 'True', reason: 'Published', message: '' };
    await patchStatus(run, Website, website, {
      ...{ observedGeneration: website.metadata.generation, page },
      conditions: [...withCondition(website.status?.conditions, ready, run.clock)],
    });
  },
};

/** The sitemap belongs to all websites, so a finalizer removes the line of a deleted one. */
async function setLine({ client, read }: ReconcileRun, namespace: string, name: string, title: string | null) {
  const maps = client.resource(ConfigMap).namespace(namespace);
  const sitemap = read(ConfigMap).get(`${namespace}/sitemap`);
  if (sitemap !== undefined && (sitemap.data?.[name] ?? null) !== title)
    await maps.patch('sitemap', 'merge', { data: { [name]: title } });
  if (sitemap === undefined && title !== null)
    await maps.create({ metadata: { name: 'sitemap' }, data: { [name]: title } });
}
