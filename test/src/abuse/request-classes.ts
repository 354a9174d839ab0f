// One file: the generators of hostile requests are data that is compared side by side.
import type { Random } from '@keelson/conformance';
import { manifestsOf } from '../manifests.ts';
import { wireMedia } from '../wire-media.ts';
import { hostileText, mutateBytes, mutateTree, specialNames } from './mutations.ts';

/** One generated HTTP/1.1 request. */
export interface HostileRequest {
  readonly bytes: Buffer;
  /** The reply to a HEAD request has no body. */
  readonly noReplyBody: boolean;
  /** The server may wait for the rest of the body. */
  readonly incomplete?: boolean;
}

/** The namespace that hostile requests write to, and the object that patches address. */
export const abusedNamespace = 'abused';
export const patchedName = 'patched';

const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'hostile', labels: { app: 'hostile' }, annotations: { note: 'x' }, finalizers: [] },
  spec: {
    nodeName: 'missing',
    containers: [
      {
        name: 'main',
        image: 'main:1.0',
        env: [{ name: 'A', value: 'b' }],
        ports: [{ containerPort: 80, protocol: 'TCP' }],
        resources: { requests: { cpu: '100m', memory: '64Mi' } },
        livenessProbe: { httpGet: { path: '/', port: 80 } },
      },
    ],
    tolerations: [{ key: 'a', operator: 'Exists' }],
    volumes: [{ name: 'data', emptyDir: {} }],
  },
};

const documents = [...Object.values(manifestsOf('hostile', abusedNamespace)), pod] as readonly {
  readonly apiVersion: string;
  readonly kind: string;
}[];

function collectionOf({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): string {
  const prefix = apiVersion.includes('/') ? 'apis' : 'api';
  const plural = kind.endsWith('s') ? `${kind}es` : `${kind}s`;
  return `/${prefix}/${apiVersion}/namespaces/${abusedNamespace}/${plural.toLowerCase()}`;
}

const patchedPath = `${collectionOf({ apiVersion: 'v1', kind: 'ConfigMap' })}/${patchedName}`;
const deploymentPath = `/apis/apps/v1/namespaces/${abusedNamespace}/deployments/${patchedName}`;

interface Parts {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
}

function request({ method, path, headers = {}, body }: Parts): HostileRequest {
  const all = { host: '127.0.0.1', ...(body && { 'content-length': String(body.length) }), ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  // Bytes that would end the request line are a matter of the class `headers`.
  const line = `${method} ${path.replace(/[\r\n \t]/g, '%20')} HTTP/1.1\r\n`;
  const head = Buffer.from(`${line}${lines.join('')}\r\n`);
  return { bytes: body === undefined ? head : Buffer.concat([head, body]), noReplyBody: method === 'HEAD' };
}

/** A creation, or a replacement of an object that may exist, with this body. */
function write(
  random: Random,
  document: { apiVersion: string; kind: string },
  type: string,
  body: Buffer,
): HostileRequest {
  const collection = collectionOf(document);
  const options = random.pick(['', '?dryRun=All', '?fieldValidation=Strict', '?fieldValidation=Warn']);
  return random.chance(0.7)
    ? request({ method: 'POST', path: `${collection}${options}`, headers: { 'content-type': type }, body })
    : request({ method: 'PUT', path: `${collection}/hostile${options}`, headers: { 'content-type': type }, body });
}

function json(random: Random): HostileRequest {
  const document = random.pick(documents);
  const text = JSON.stringify(random.chance(0.8) ? mutateTree(random, document) : document);
  const body = Buffer.from(text);
  return write(random, document, 'application/json', random.chance(0.5) ? mutateBytes(random, body) : body);
}

const yamlFragments = [
  'a: &a [x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a]\nc: [*b, *b, *b, *b, *b]\n',
  '<<: *missing\n',
  '? [complex, key]\n: value\n',
  '!!js/function "function(){}"\n',
  '!!binary aGVsbG8=\n',
  'data: !!set {a, b}\n',
  '%TAG ! tag:example.com,2000:\n---\n',
  '---\n---\n...\n',
  'metadata: {name: 0x1F, labels: {a: .inf, b: .nan, c: 0o17, d: 1_000}}\n',
  'data: |+9\n   text\n',
  `${'- '.repeat(200)}x\n`,
  '{'.repeat(150),
  '\t\ttabs: 1\n',
];

function yaml(random: Random): HostileRequest {
  const document = random.pick(documents);
  let body = wireMedia.yaml.encode(document);
  if (random.chance(0.4)) {
    const at = random.below(body.length);
    body = Buffer.concat([body.subarray(0, at), Buffer.from(random.pick(yamlFragments)), body.subarray(at)]);
  }
  return write(random, document, 'application/yaml', random.chance(0.7) ? mutateBytes(random, body) : body);
}

const protobufBodies = documents.map((document) => wireMedia.protobuf.encode(document));

function protobuf(random: Random): HostileRequest {
  const index = random.below(documents.length);
  const document = documents[index] ?? pod;
  const body = mutateBytes(random, protobufBodies[index] ?? Buffer.alloc(0));
  return write(random, document, 'application/vnd.kubernetes.protobuf', body);
}

const mediaTypes = [
  'application/json',
  'application/yaml',
  'application/vnd.kubernetes.protobuf',
  'application/json;as=Table;g=meta.k8s.io;v=v1',
  'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
  'application/json;stream=watch',
  'application/json-patch+json',
  'application/apply-patch+yaml',
  'text/plain',
  'text/html',
  'multipart/form-data; boundary=x',
  'application/x-www-form-urlencoded',
  '*/*',
  '*/json',
  '',
];

function mediaType(random: Random): string {
  const type = random.pick(mediaTypes);
  const kind = random.below(5);
  if (kind === 0) return type;
  if (kind === 1) return `${type};q=${random.pick(['0', '1', '2', '-1', 'x', '0.0001'])}, ${random.pick(mediaTypes)}`;
  if (kind === 2) return `${type}; charset=${random.pick(['utf-8', 'utf-16', 'x', '"utf-8', ''])}`;
  if (kind === 3) return Array.from({ length: 1 + random.below(40) }, () => random.pick(mediaTypes)).join(',');
  return type.replace(/[a-z]/, hostileText(random).replace(/[^ -~]/g, ''));
}

function contentTypes(random: Random): HostileRequest {
  const document = random.pick(documents);
  const headers = {
    'content-type': mediaType(random),
    accept: mediaType(random),
    ...(random.chance(0.3) && {
      'accept-encoding': random.pick(['gzip', 'gzip;q=0', 'br', '*', 'identity;q=0', 'gzip, gzip']),
    }),
    ...(random.chance(0.1) && { 'content-encoding': random.pick(['gzip', 'br', 'identity', 'x']) }),
  };
  const body = Buffer.from(JSON.stringify(document));
  const path = collectionOf(document);
  const method = random.pick(['GET', 'POST', 'PUT', 'PATCH']);
  if (method === 'GET') return request({ method, path, headers });
  return request({ method, path: method === 'POST' ? path : `${path}/hostile`, headers, body });
}

const parameters = [
  'limit',
  'continue',
  'resourceVersion',
  'resourceVersionMatch',
  'labelSelector',
  'fieldSelector',
  'timeoutSeconds',
  'watch',
  'allowWatchBookmarks',
  'sendInitialEvents',
  'dryRun',
  'fieldManager',
  'fieldValidation',
  'force',
  'pretty',
  'gracePeriodSeconds',
  'propagationPolicy',
  'orphanDependents',
  'exact',
  'export',
  'includeObject',
  'timeout',
];

const parameterValues = [
  '',
  '0',
  '1',
  '-1',
  'true',
  'false',
  'All',
  'Strict',
  'Exact',
  'NotOlderThan',
  'Background',
  '2147483648',
  '9223372036854775808',
  '1e3',
  'app=hostile',
  'app in (a,b),!c',
  'app notin (,)',
  'a=b,'.repeat(60),
  'metadata.name=hostile',
  'metadata.name!=a,spec.nodeName=',
  'status.phase=',
  'eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0',
];

function queries(random: Random): HostileRequest {
  const pairs = Array.from({ length: 1 + random.below(5) }, () => {
    const name = random.chance(0.9) ? random.pick(parameters) : hostileText(random);
    const value = random.chance(0.7) ? encodeURIComponent(random.pick(parameterValues)) : hostileText(random);
    return random.chance(0.05) ? name : `${name}=${value}`;
  });
  const collection = collectionOf(random.pick(documents));
  const path = random.chance(0.7) ? collection : `${collection}/hostile`;
  const method = random.pick(['GET', 'GET', 'GET', 'GET', 'HEAD', 'DELETE', 'POST', 'PATCH']);
  const body = method === 'POST' || method === 'PATCH' ? { body: Buffer.from('{}') } : {};
  return request({
    method,
    path: `${path}?${pairs.join('&')}`,
    headers: { 'content-type': 'application/json' },
    ...body,
  });
}

const segments = [
  'api',
  'apis',
  'v1',
  'apps',
  'extensions',
  'v1beta1',
  'namespaces',
  abusedNamespace,
  'configmaps',
  'deployments',
  'pods',
  'events',
  'hostile',
  'status',
  'scale',
  'log',
  'proxy',
  'exec',
  'binding',
  'watch',
  'openapi',
  'v2',
  'v3',
  'version',
  'metrics',
  '',
  '.',
  '..',
  '%2e%2e',
  '%2f',
  '%5c',
  '%00',
  '%c0%ae',
  '%',
  '*',
  'x'.repeat(500),
  ...specialNames,
];

function paths(random: Random): HostileRequest {
  const parts = Array.from({ length: 1 + random.below(9) }, () =>
    random.chance(0.9) ? random.pick(segments) : hostileText(random).replace(/\?/g, ''),
  );
  const prefix = random.pick(['/', '/', '/', '//', '', '/./', 'http://127.0.0.1/', 'http://[bad', '*']);
  const method = random.pick(['GET', 'GET', 'GET', 'HEAD', 'OPTIONS', 'POST', 'TRACE', 'QUERY', 'get', 'PROPFIND']);
  const body = method === 'POST' ? { body: Buffer.from('{"metadata":{}}') } : {};
  return request({
    method,
    path: `${prefix}${parts.join('/')}`,
    headers: { 'content-type': 'application/json' },
    ...body,
  });
}

const pointers = [
  '',
  '/',
  '/data',
  '/data/key',
  '/data/-',
  '/metadata/labels/a~1b',
  '/metadata/labels/a~2',
  '/spec',
  '/-',
  '/0',
  '/data/0/1',
];

function patchDocument(random: Random, type: string): unknown {
  if (type === 'application/json-patch+json') {
    return Array.from({ length: random.below(30) }, () => ({
      op: random.pick(['add', 'remove', 'replace', 'move', 'copy', 'test', 'none']),
      path: random.pick(pointers),
      ...(random.chance(0.5) && { from: random.pick(pointers) }),
      ...(random.chance(0.7) && { value: mutateTree(random, { a: [1, { b: 'c' }] }) }),
    }));
  }
  const container = { name: 'main', $patch: random.pick(['delete', 'replace', 'merge', 'x']) };
  return mutateTree(random, {
    metadata: { labels: { a: null, b: 'c' }, resourceVersion: random.pick(['', '1', 'x']), finalizers: ['a.b/c'] },
    data: { key: 'value', $patch: 'replace', $retainKeys: ['key'] },
    spec: {
      replicas: 2,
      template: {
        spec: {
          containers: [container, { $patch: 'delete', name: 'x' }],
          '$setElementOrder/containers': [{ name: 'x' }],
          '$deleteFromPrimitiveList/finalizers': ['a'],
        },
      },
    },
  });
}

const patchTypes = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
];

function patches(random: Random): HostileRequest {
  const type = random.pick(patchTypes);
  const body = Buffer.from(JSON.stringify(patchDocument(random, random.chance(0.95) ? type : random.pick(patchTypes))));
  const path = random.pick([patchedPath, deploymentPath, `${deploymentPath}/status`, `${deploymentPath}/scale`]);
  const changed = random.chance(0.15) ? mutateBytes(random, body) : body;
  return request({ method: 'PATCH', path, headers: { 'content-type': type }, body: changed });
}

/** JSON text, because an object literal cannot hold `__proto__` as a plain key. */
function specialJson(random: Random, depth = 0): string {
  const name = JSON.stringify(random.pick(specialNames));
  const value =
    depth < 3 && random.chance(0.6)
      ? specialJson(random, depth + 1)
      : random.pick(['"polluted"', 'true', 'null', '[]']);
  return random.chance(0.3) ? `{${name}:${value},"polluted":"yes"}` : `{${name}:${value}}`;
}

function prototypeKeys(random: Random): HostileRequest {
  const special = random.pick(specialNames);
  const kind = random.below(4);
  if (kind === 0) {
    const body = `{"metadata":{"name":"hostile","labels":${specialJson(random)}},"data":${specialJson(random)},"${special}":{}}`;
    return write(random, { apiVersion: 'v1', kind: 'ConfigMap' }, 'application/json', Buffer.from(body));
  }
  if (kind === 1) {
    const type = random.pick(patchTypes);
    const pointer = `/${random.pick(['', 'data/', 'metadata/'])}${special}/polluted`;
    const operations = `[{"op":"add","path":"${pointer}","value":${specialJson(random)}}]`;
    const merged = `{"data":${specialJson(random)},"metadata":${specialJson(random)},"spec":${specialJson(random)}}`;
    const body = Buffer.from(type === 'application/json-patch+json' ? operations : merged);
    return request({
      method: 'PATCH',
      path: random.pick([patchedPath, deploymentPath]),
      headers: { 'content-type': type },
      body,
    });
  }
  const collection = collectionOf(random.pick(documents));
  if (kind === 2) {
    const query = random.pick([
      `${special}=1`,
      `labelSelector=${special}%3Da`,
      `fieldSelector=${special}.${special}%3Da`,
    ]);
    return request({ method: 'GET', path: `${collection}?${query}` });
  }
  return request({
    method: 'GET',
    path: `${random.pick([collection, '/apis', '/openapi/v3/apis'])}/${special}`,
    headers: { [special]: special },
  });
}

const headerLines = [
  'Impersonate-User: ',
  'Impersonate-User: a\r\nImpersonate-User: b',
  'Impersonate-Uid: 1',
  'Impersonate-Group: system:masters',
  'Impersonate-Foo: bar',
  'Impersonate-Extra-a%zz: b',
  'Authorization: Bearer',
  'Authorization: Bearer \u00e9',
  'Authorization: Basic !!!!',
  'Authorization: Negotiate x',
  'Expect: 100-continue',
  'Expect: 200-ok',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: chunked, identity',
  'Transfer-Encoding: \tchunked',
  'Content-Length: 5',
  'Content-Length: -1',
  'Content-Length: 99999999999999999999',
  'Content-Length: 3\r\nContent-Length: 4',
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x',
  'Connection: Upgrade\r\nUpgrade: SPDY/3.1',
  'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk',
  'Connection: close, keep-alive',
  'Host: other.example.com',
  'Host: a b',
  'Origin: https://attacker.example.com',
  'X-Remote-User: admin\r\nX-Remote-Group: system:masters',
  'X-Forwarded-For: 127.0.0.1',
  'Cookie: a=b',
  'Range: bytes=0-1',
  'If-None-Match: *',
  'If-Modified-Since: never',
  ' folded: line',
  'no colon',
  ': empty name',
  `X-Long: ${'x'.repeat(20_000)}`,
  `${'x'.repeat(5000)}: long name`,
  'Bad\u0000Name: x',
  'X-Null: a\u0000b',
];

function headers(random: Random): HostileRequest {
  const chosen = Array.from({ length: 1 + random.below(4) }, () =>
    random.chance(0.85) ? random.pick(headerLines) : `${hostileText(random)}: ${hostileText(random)}`,
  );
  const method = random.pick(['GET', 'POST', 'HEAD', 'DELETE', hostileText(random)]);
  const path = random.chance(0.8) ? `${collectionOf(random.pick(documents))}/hostile` : `/${hostileText(random)}`;
  const version = random.chance(0.9)
    ? 'HTTP/1.1'
    : random.pick(['HTTP/1.0', 'HTTP/2.0', 'HTTP/0.9', 'HTTP/9.9', '', 'SPDY/3']);
  const end = random.pick(['\r\n', '\r\n', '\r\n', '\n']);
  const host = random.chance(0.95) ? `Host: 127.0.0.1${end}` : '';
  const head = `${method} ${path} ${version}${end}${host}${chosen.join(end)}${end}Connection: close${end}${end}`;
  // What follows would be a second request if the server and a proxy disagreed about the length of the first.
  const rest = random.chance(0.3) ? `5\r\nhello\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n` : '';
  const incomplete = /^(content-length|transfer-encoding):/im.test(head);
  return { bytes: Buffer.from(`${head}${rest}`), noReplyBody: method === 'HEAD', incomplete };
}

/** Requests to the HTTP ports of a node agent. */
function agentPorts(random: Random): HostileRequest {
  const agentSegments = [
    'pods',
    'runningpods',
    'logs',
    'containerLogs',
    'exec',
    'attach',
    'run',
    'portForward',
    'stats',
    'summary',
    'metrics',
    'cadvisor',
    'healthz',
    'configz',
    'debug',
    'pprof',
    'spec',
    'default',
    'hostile',
    'main',
    '..',
    '%2e%2e',
    '%2f',
    '..%2f..%2f..%2fsecret.txt',
    '%00',
    '',
    ...specialNames,
  ];
  const parts = Array.from({ length: 1 + random.below(6) }, () => random.pick(agentSegments));
  const query = random.chance(0.5)
    ? `?${random.pick(['command', 'cmd', 'follow', 'tailLines', 'limitBytes', 'port', 'input', 'tty', 'sinceTime'])}=${hostileText(random)}`
    : '';
  if (random.chance(0.3)) return headers(random);
  const method = random.pick(['GET', 'GET', 'POST', 'PUT', 'DELETE', 'OPTIONS']);
  const body =
    method === 'GET' || method === 'OPTIONS' ? {} : { body: mutateBytes(random, Buffer.from('{"spec":{}}')) };
  return request({
    method,
    path: `/${parts.join('/')}${query}`,
    headers: { 'content-type': 'application/json' },
    ...body,
  });
}

/** Generators of requests by class; `count` is the number of requests of a full run. */
export const requestClasses = {
  json: { count: 40_000, generate: json },
  yaml: { count: 15_000, generate: yaml },
  protobuf: { count: 30_000, generate: protobuf },
  'content types': { count: 12_000, generate: contentTypes },
  queries: { count: 25_000, generate: queries },
  paths: { count: 25_000, generate: paths },
  patches: { count: 25_000, generate: patches },
  'prototype keys': { count: 8000, generate: prototypeKeys },
  headers: { count: 10_000, generate: headers },
} as const satisfies Readonly<Record<string, { count: number; generate: (random: Random) => HostileRequest }>>;

export const agentClass = { count: 4000, generate: agentPorts };
