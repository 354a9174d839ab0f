import { type ResourceRegistry, UsageError } from '@keelson/core/internal';
import type { OwnRoutes, RouteSource } from '../exchange/options.ts';
import { issuerPaths } from './api-documents.ts';

/** First segments of the paths of the API. */
const apiSegments = ['api', 'apis', 'openapi', 'openid', 'healthz', 'livez', 'readyz', 'metrics', 'version'];

const apiPaths = [
  ...['/', '/index.html', '/swagger.json', '/swagger-2.0.0.pb-v1', '/openapi/v2', '/openapi/v3', '/openapi/v3/api/v1'],
  ...['/healthz', '/healthz/ping', '/livez', '/livez/ping', '/readyz', '/readyz/ping', '/metrics', '/version'],
  ...['/api', '/apis', ...issuerPaths],
];

/** Paths of the API, those of the served kinds included, against which patterns of routes are compared. */
function samplesOf(registry: ResourceRegistry): Set<string> {
  const paths = new Set(apiPaths);
  for (const { group, version, names, subresources } of registry.kinds()) {
    const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
    if (group !== '') paths.add(`/apis/${group}`);
    paths.add(root);
    for (const place of ['', '/namespaces/default']) {
      const collection = `${root}${place}/${names.plural}`;
      paths.add(collection).add(`${collection}/name`);
      for (const { name } of subresources) paths.add(`${collection}/name/${name}`);
    }
  }
  return paths;
}

function conflictOf(
  { path, regexp }: RouteSource['stack'][number],
  segments: ReadonlySet<string>,
  samples: ReadonlySet<string>,
): string | undefined {
  const segment = typeof path === 'string' ? /^\/([^/:*{}()?]+)(?=\/|$)/.exec(path)?.[1]?.toLowerCase() : undefined;
  if (segment !== undefined && segments.has(segment)) return `/${segment}`;
  for (const sample of samples) if (regexp.test(sample)) return sample;
  return undefined;
}

/**
 * The API answers its own paths before any route, so that a route on one of them would never be called.
 *
 * @throws UsageError that names the route and the path of the API
 */
export function checkRoutes({ routes = [], reserved = [] }: OwnRoutes, registry: ResourceRegistry): void {
  if (routes.length === 0) return;
  const segments = new Set([...apiSegments, ...reserved]);
  const samples = samplesOf(registry);
  for (const [i, router] of routes.entries()) {
    if (typeof router?.routes !== 'function' || typeof router.stack?.[Symbol.iterator] !== 'function')
      throw new UsageError(`routes[${i}] is not a router of @koa/router`);
    for (const layer of router.stack) {
      // Middleware of a router; it runs only for routes of the router.
      if (layer.methods.length === 0) continue;
      const conflict = conflictOf(layer, segments, samples);
      if (conflict === undefined) continue;
      const methods = layer.methods.filter((method) => method !== 'HEAD' || layer.methods.length === 1);
      throw new UsageError(
        `routes[${i}]: the route ${methods.join(', ')} ${String(layer.path)} conflicts with the path ${conflict} of ` +
          'the API; use a path of its own, such as /team/...',
      );
    }
  }
}
