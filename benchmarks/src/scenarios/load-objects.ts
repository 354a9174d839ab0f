import { httpRequest, podManifest } from '../fixtures.ts';
import type { Load } from '../load/load.ts';

export const benchNamespace = 'bench';
/** Pods made by scenarios go elsewhere, so that lists keep their size. */
export const createdNamespace = 'created';
export const podsPath = `/api/v1/namespaces/${benchNamespace}/pods`;
export const firstPod = 'pod-first';

const namespaceOf = (name: string): string =>
  httpRequest('POST', '/api/v1/namespaces', JSON.stringify({ metadata: { name } }));

/** Makes the namespaces and the pods that scenarios read. */
export async function loadObjects(load: Load, port: number, count: number): Promise<void> {
  await load.requests({
    port,
    connections: 1,
    count: 2,
    requests: [namespaceOf(benchNamespace), namespaceOf(createdNamespace)],
  });
  await load.requests({
    port,
    connections: 1,
    count: 1,
    requests: [httpRequest('POST', podsPath, JSON.stringify(podManifest(firstPod, benchNamespace)))],
  });
  await morePods(load, port, count - 1);
}

/** So many pods more; a hundred different bodies, so that not all objects are alike. */
export async function morePods(load: Load, port: number, count: number): Promise<void> {
  const requests = Array.from({ length: 100 }, (_, shard) =>
    httpRequest('POST', podsPath, JSON.stringify(podManifest('pod-{n}', benchNamespace, String(shard)))),
  );
  await load.requests({ port, connections: 32, count, requests });
}
