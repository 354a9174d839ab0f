import type { Pod } from '@keelson/kinds';
import { ManifestError, maxManifestBytes } from '../sources/parse-manifest.ts';
import type { SubmitSource } from '../sources/submit-source.ts';
import { requireKnownCaller } from './access/known-caller.ts';
import { type AgentRequest, HttpProblem, readBody, sendJson } from './http/request.ts';
import type { Route } from './http/route.ts';

/** A manifest can run any command on this host. */
const checkWriter = (request: AgentRequest) => requireKnownCaller(request, 'manifests are accepted');

/** A web page in a browser on this host cannot send these types without a preflight request. */
const types = ['application/json', 'application/yaml'];

async function document(request: AgentRequest): Promise<Buffer> {
  const type = (request.incoming.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (!types.includes(type)) throw new HttpProblem(415, `the content type must be one of ${types.join(', ')}`);
  return readBody(request.incoming, maxManifestBytes);
}

const list = (items: readonly Pod[]) => ({ kind: 'PodList', apiVersion: 'v1', metadata: {}, items });

async function orRefused<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ManifestError) throw new HttpProblem(422, `the manifest ${error.message}`);
    throw error;
  }
}

function onlyRoot({ path }: AgentRequest): void {
  if (path.length > 1) throw new HttpProblem(404, '404 page not found');
}

/**
 * Submitting manifests (main port only): `GET /manifests` lists the pods, `POST` adds pods or replaces those of the
 * same name, `PUT` replaces the whole set by its pods, `DELETE /manifests/{namespace}/{name}` removes one. Bodies are
 * one pod or a list.
 */
export function manifestRoutes(source: SubmitSource): Route[] {
  const put = (change: (document: Buffer) => Promise<readonly Pod[]>) => async (request: AgentRequest) => {
    onlyRoot(request);
    checkWriter(request);
    const body = await document(request);
    sendJson(request.response, list(await orRefused(() => change(body))));
  };
  return [
    {
      first: 'manifests',
      methods: ['GET'],
      serve(request) {
        onlyRoot(request);
        sendJson(request.response, list(source.pods()));
      },
    },
    { first: 'manifests', methods: ['POST'], serve: put((body) => source.put(body)) },
    { first: 'manifests', methods: ['PUT'], serve: put((body) => source.replace(body)) },
    {
      first: 'manifests',
      methods: ['DELETE'],
      async serve(request) {
        const [, namespace, name, ...rest] = request.path;
        if (namespace === undefined || name === undefined || rest.length > 0) {
          throw new HttpProblem(400, 'the path must be /manifests/{namespace}/{name}');
        }
        checkWriter(request);
        const pod = await source.remove(namespace, name);
        if (pod === undefined)
          throw new HttpProblem(404, `manifest ${JSON.stringify(`${namespace}/${name}`)} does not exist`);
        sendJson(request.response, pod);
      },
    },
  ];
}
