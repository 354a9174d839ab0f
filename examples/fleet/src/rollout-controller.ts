import { createHttpClient, type HttpApiClient } from '@keelson/client';
import { type ControllerDefinition, patchStatus, relatedKind } from '@keelson/controller-kit';
import { ConfigMap } from '@keelson/kinds';
import { type ApiClient, isStatusError, labelSetSelector, type Stored } from 'keelson';
import { Rollout, Site } from './rollout.ts';

/** Sites are asked again after this time, because the hub does not watch them. */
const againAfterMs = 30_000;
/** Time for the answers of one site. */
const answerMs = 5000;

/** Copies the settings of each rollout to the config map of its name in the namespace `default` of every site. */
export class RolloutController implements ControllerDefinition<Rollout> {
  readonly name = 'rollout-controller';
  readonly kind = Rollout;
  // A new or changed site concerns every rollout.
  readonly related = [
    relatedKind(Site, (_site, _before, read) =>
      read(Rollout)
        .list()
        .map(({ metadata }) => metadata.name),
    ),
  ];
  readonly #clients = new Map<string, HttpApiClient>();

  readonly reconcile: ControllerDefinition<Rollout>['reconcile'] = async (rollout, run) => {
    const { siteLabels = {}, data } = rollout.spec;
    const selector = labelSetSelector(siteLabels);
    const sites = run
      .read(Site)
      .list()
      .filter(({ metadata }) => selector.matches(metadata.labels));
    // One site that does not answer does not delay the others.
    const results = await Promise.allSettled(
      sites.map((site) => apply(this.#clientOf(site), rollout.metadata.name, data, run.signal)),
    );
    const failed = results.flatMap((result, index) =>
      result.status === 'rejected' ? [`${sites[index]?.metadata.name}: ${(result.reason as Error).message}`] : [],
    );
    await patchStatus(run, Rollout, rollout, { sites: sites.length, ready: sites.length - failed.length, failed });
    return { againAfterMs };
  };

  close(): void {
    for (const client of this.#clients.values()) client.close();
  }

  #clientOf({ spec: { server } }: Stored<Site>): ApiClient {
    const client = this.#clients.get(server) ?? createHttpClient({ server });
    this.#clients.set(server, client);
    return client;
  }
}

async function apply(site: ApiClient, name: string, data: Record<string, string>, stop: AbortSignal): Promise<void> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(answerMs)]);
  const maps = site.resource(ConfigMap).namespace('default');
  try {
    const known = await maps.get(name, { signal });
    if (JSON.stringify(known.data) !== JSON.stringify(data)) await maps.update({ ...known, data }, { signal });
  } catch (error) {
    if (!isStatusError(error, 'NotFound')) throw error;
    await maps.create({ metadata: { name }, data }, { signal });
  }
}
