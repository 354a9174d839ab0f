import test from 'ava';
import { bodyMedia, parseMediaRange, patchTypeOfContent } from '../../src/codec/media-type.ts';
import { negotiate, type Offer } from '../../src/codec/negotiation.ts';

const gvk = (kind: string, version = 'v1', group = 'meta.k8s.io') => ({ group, version, kind });
const tables = [gvk('Table'), gvk('Table', 'v1beta1')];
const json: Offer = { mediaType: 'application/json', targets: [...tables, gvk('PartialObjectMetadata')] };
const yaml: Offer = { mediaType: 'application/yaml', targets: tables };
const protobuf: Offer = { mediaType: 'application/vnd.kubernetes.protobuf', targets: [gvk('PartialObjectMetadata')] };
const offers = [json, yaml, protobuf];

/** `json`, `yaml`, `protobuf`, with the target behind a colon; `406` when nothing fits. */
function choose(accept: string | undefined, from: readonly Offer[] = offers): string {
  const chosen = negotiate(accept, from);
  if (!chosen) return '406';
  const name = (/[a-z]+$/.exec(chosen.offer.mediaType) as RegExpExecArray)[0];
  return [name, ...(chosen.target ? [`${chosen.target.kind}.${chosen.target.version}`] : [])].join(':');
}

const kubectlTable =
  'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json';

const table: [string | undefined, string][] = [
  [undefined, 'json'],
  ['', 'json'],
  ['*/*', 'json'],
  ['application/*', 'json'],
  ['application/json, */*', 'json'],
  ['application/json;charset=utf-8', 'json'],
  ['APPLICATION/YAML', 'yaml'],
  ['application/json, */*;q=0.8', 'json'],
  ['application/vnd.kubernetes.protobuf,application/json', 'protobuf'],
  ['application/vnd.kubernetes.protobuf;q=0.5,application/yaml;q=0.9', 'yaml'],
  ['application/yaml;q=0.9, application/json', 'json'],
  ['text/html, image/png', '406'],
  ['text/html, application/yaml;q=0.1', 'yaml'],
  ['text/*', '406'],
  ['nonsense', '406'],
  ['nonsense, */*', 'json'],
  ['application/json;q=0', '406'],
  ['*/*, application/json;q=0', 'yaml'],
  ['application/json;q=abc', 'json'],
  [kubectlTable, 'json:Table.v1'],
  ['application/json;as=Table;v=v1beta1;g=meta.k8s.io', 'json:Table.v1beta1'],
  ['application/json;as=Table;v=v2;g=meta.k8s.io, application/json', 'json'],
  ['application/json;as=Table;v=v2;g=meta.k8s.io', '406'],
  ['application/json;as=Table;v=v1;g=other.io', '406'],
  ['application/json;as=Table', '406'],
  ['application/json;g=meta.k8s.io;v=v1', '406'],
  ['application/json;as="Table";v="v1";g="meta.k8s.io"', 'json:Table.v1'],
  // No Table in protobuf: the clause is skipped, not refused.
  [
    'application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1;g=meta.k8s.io',
    'json:Table.v1',
  ],
  [
    'application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
    'protobuf:PartialObjectMetadata.v1',
  ],
  ['*/*;as=Table;v=v1;g=meta.k8s.io', 'json:Table.v1'],
  ['application/json;stream=watch', '406'],
  ['application/json;stream=watch, application/json', 'json'],
];

test('Accept headers', (t) => {
  for (const [accept, expected] of table) t.is(choose(accept), expected, accept);
});

test('watches: only forms with frames, with or without naming the stream', (t) => {
  const streams: Offer[] = [
    { ...json, stream: 'watch' },
    { ...protobuf, stream: 'watch' },
  ];
  t.is(choose('application/json;stream=watch', streams), 'json');
  t.is(choose('application/json', streams), 'json');
  t.is(choose('application/vnd.kubernetes.protobuf;stream=watch', streams), 'protobuf');
  t.is(choose('application/yaml', streams), '406');
  t.is(choose('application/json;stream=tail', streams), '406');
  t.is(negotiate('application/json;stream=watch', streams)?.stream, 'watch');
});

test('pretty is a parameter of the clause', (t) => {
  t.is(negotiate('application/json;pretty=1', offers)?.pretty, true);
  t.is(negotiate('application/json;pretty=0', offers)?.pretty, false);
  t.is(negotiate('application/json', offers)?.pretty, undefined);
});

test('without offers no media type is acceptable', (t) => {
  t.is(negotiate(undefined, []), undefined);
  t.is(negotiate('*/*', []), undefined);
});

test('a huge header costs little', (t) => {
  const started = performance.now();
  t.is(choose(Array(2000).fill('text/html;q=0.1;a="x,y\\"z"').join(',')), '406');
  t.true(performance.now() - started < 10_000);
});

test('quoted parameter values may hold separators', (t) => {
  const range = parseMediaRange('a/b; x="1,;\\"2" ;Y= z;broken; q=1;x=2');
  t.deepEqual(
    [...(range?.parameters ?? [])],
    [
      ['x', '1,;"2'],
      ['y', 'z'],
      ['q', '1'],
    ],
  );
});

test('Content-Type of bodies', (t) => {
  t.is(bodyMedia(undefined), 'json');
  t.is(bodyMedia(''), 'json');
  t.is(bodyMedia('Application/JSON; charset=UTF-8'), 'json');
  t.is(bodyMedia('application/yaml'), 'yaml');
  t.is(bodyMedia('application/vnd.kubernetes.protobuf'), 'protobuf');
  t.is(bodyMedia('application/vnd.acme.protobuf'), undefined);
  t.is(bodyMedia('application/vnd.acme.protobuf', { vendor: 'acme', metaGroup: 'meta.acme.io' }), 'protobuf');
  t.is(bodyMedia('text/plain'), undefined);
});

test('Content-Type of patches', (t) => {
  t.is(patchTypeOfContent('application/json-patch+json'), 'json');
  t.is(patchTypeOfContent('application/merge-patch+json; charset=utf-8'), 'merge');
  t.is(patchTypeOfContent('application/strategic-merge-patch+json'), 'strategic');
  t.is(patchTypeOfContent('application/apply-patch+yaml'), 'apply');
  for (const other of [undefined, 'application/json', 'application/apply-patch+cbor', 'constructor', '__proto__']) {
    t.is(patchTypeOfContent(other), undefined);
  }
});
