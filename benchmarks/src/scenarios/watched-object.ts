import { httpRequest, patchRequest } from '../fixtures.ts';
import type { Spawned } from '../measure/spawned.ts';
import type { Stage } from './scenario.ts';

const path = '/api/v1/namespaces/default/configmaps';

/** An object that watchers look at, and the write that changes it. */
export interface WatchedObject {
  readonly name: string;
  readonly patch: string;
  /** Smaller than any of its frames and greater than half of one. */
  readonly leastFrame: number;
}

export async function createWatched(
  stage: Stage,
  server: Spawned,
  name: string,
  dataBytes: number,
  tls = false,
): Promise<WatchedObject> {
  const body = JSON.stringify({ metadata: { name }, data: { data: 'x'.repeat(dataBytes) } });
  await stage.load.requests({
    port: server.port,
    tls,
    connections: 1,
    count: 1,
    requests: [httpRequest('POST', path, body)],
  });
  return { name, patch: patchRequest(`${path}/${name}`), leastFrame: dataBytes + 150 };
}

/** Bytes of one event frame about the object. */
export async function frameBytes(server: Spawned, { name }: WatchedObject): Promise<number> {
  const body = await (await fetch(`http://127.0.0.1:${server.port}${path}/${name}`)).arrayBuffer();
  const annotationAndEnvelope = 110;
  return body.byteLength + annotationAndEnvelope;
}

/** A watch of the object alone that begins now. */
export async function watchRequest(server: Spawned, object: WatchedObject): Promise<string> {
  const list = (await (await fetch(`http://127.0.0.1:${server.port}${path}?limit=1`)).json()) as {
    metadata: { resourceVersion: string };
  };
  return watchRequestOf(object, `resourceVersion=${list.metadata.resourceVersion}&`);
}

/** A watch of the object alone that begins with its present state, unless the parameters name a revision. */
export function watchRequestOf({ name }: WatchedObject, parameters = ''): string {
  return httpRequest('GET', `${path}?watch=1&${parameters}fieldSelector=metadata.name%3D${name}`);
}
