import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { parseRequestAttributes } from '@keelson/core/internal';
import type { SpanAttributes, Tracing } from '@keelson/core/runtime';

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * The listener with a span for each request, in the trace of its client. Names and attributes follow the semantic
 * conventions of OpenTelemetry for HTTP servers; the route has placeholders instead of names.
 */
export function tracedListener(listener: Listener, tracing: Tracing): Listener {
  return (request, response) => {
    const { headers } = request;
    const { name, attributes } = describe(request);
    void tracing.span({ name, kind: 'server', headers, attributes }, (span) => {
      const ended = new Promise<void>((resolve) => {
        response.once('close', () => {
          span.set({ 'http.response.status_code': response.statusCode });
          if (response.statusCode >= 500) span.fail(`the answer is ${response.statusCode}`);
          resolve();
        });
      });
      listener(request, response);
      return ended;
    });
  };
}

function describe(request: IncomingMessage): { readonly name: string; readonly attributes: SpanAttributes } {
  const { method = 'GET', url = '/', headers, socket } = request;
  const parsed = parseRequestAttributes(method, url);
  const { verb, isResourceRequest, apiGroup, apiVersion, namespace, resource, subresource, path } = parsed;
  const agent = headers['user-agent'];
  const common = {
    'http.request.method': method,
    'url.scheme': (socket as TLSSocket).encrypted === true ? 'https' : 'http',
    'url.path': path,
    'network.protocol.version': request.httpVersion,
    ...(agent === undefined ? {} : { 'user_agent.original': agent }),
  };
  if (!isResourceRequest) return { name: method, attributes: common };
  const route = [
    apiGroup === '' ? `/api/${apiVersion}` : `/apis/${apiGroup}/${apiVersion}`,
    ...(namespace !== '' && resource !== 'namespaces' ? ['namespaces', '{namespace}'] : []),
    resource,
    ...(parsed.named ? ['{name}'] : []),
    ...(subresource === '' ? [] : [subresource]),
  ].join('/');
  return {
    name: `${method} ${route}`,
    attributes: {
      ...common,
      'http.route': route,
      'keelson.verb': verb,
      'keelson.resource': apiGroup === '' ? resource : `${resource}.${apiGroup}`,
      ...(namespace === '' ? {} : { 'k8s.namespace.name': namespace }),
    },
  };
}
