import { RuntimeError } from '@keelson/container-runtime';
import test from 'ava';
import { ContainerStatusMessage, CreateContainerRequest, ListContainersRequest } from '../src/api/container.ts';
import { ImageMessage } from '../src/api/image.ts';
import { ContainerStatsMessage } from '../src/api/stats.ts';
import { PortForwardRequestMessage } from '../src/api/streaming.ts';
import { parseEndpoint, translateCriError } from '../src/connection/cri-connection.ts';
import { fromContainerStatus } from '../src/convert/from-cri.ts';
import { ListCache } from '../src/list-cache.ts';
import { parseSessionEnd } from '../src/streaming/remote-session.ts';
import { HeaderBlocks, readFrame } from '../src/streaming/spdy-frames.ts';
import { integer, text, textMap } from '../src/wire/kinds.ts';
import { at, message } from '../src/wire/message.ts';

const hex = (bytes: Buffer) => bytes.toString('hex');

test('messages are encoded as the protocol specifies', (t) => {
  // Field 1 text "a", field 3 -1 as ten bytes, nested message in field 2.
  const Inner = message({ value: at(3, integer) });
  const Outer = message({ name: at(1, text), inner: at(2, Inner), map: at(4, textMap) });
  t.is(hex(Outer.encode({ name: 'a', inner: { value: -1 } })), '0a0161120b18ffffffffffffffffff01');
  t.is(hex(Outer.encode({ map: { k: 'v' } })), '22060a016b120176');
  t.is(hex(Outer.encode({ name: '', inner: {} })), '1200', 'empty values are omitted, except messages');
  t.is(hex(PortForwardRequestMessage.encode({ podSandboxId: 's', port: [80, 443] })), '0a01731203' + '50bb03');
});

test('encoded messages are decoded unchanged, with numbers of any size and sign and keys of any name', (t) => {
  const status = {
    id: 'c',
    exitCode: -1,
    createdAt: 1_795_169_463_129,
    labels: Object.fromEntries([
      ['__proto__', 'x'],
      ['constructor', ''],
    ]),
    resources: { linux: { memoryLimitInBytes: 2 ** 52 + 1, cpuQuota: -1 } },
  };
  const read = ContainerStatusMessage.decode(ContainerStatusMessage.encode(status));
  t.deepEqual(read, status);
  t.true(Object.hasOwn(read.labels ?? {}, '__proto__'));
  t.is(ImageMessage.decode(ImageMessage.encode({ size: 2n ** 64n - 1n })).size, 2n ** 64n - 1n);
  const stats = { cpu: { usageCoreNanoSeconds: { value: 2n ** 63n } } };
  t.deepEqual(ContainerStatsMessage.decode(ContainerStatsMessage.encode(stats)), stats);
  const groups = {
    config: {
      linux: { securityContext: { supplementalGroups: [0, 77, 4294967294], runAsUser: { value: undefined } } },
    },
  };
  const request = CreateContainerRequest.decode(CreateContainerRequest.encode(groups));
  t.deepEqual(request.config?.linux?.securityContext?.supplementalGroups, [0, 77, 4294967294]);
  t.deepEqual(request.config?.linux?.securityContext?.runAsUser, {}, 'user 0 is distinguished from an absent user');
});

test('unknown fields are skipped, and truncated messages are rejected', (t) => {
  const Wide = message({ id: at(1, text), other: at(1000, text), number: at(7, integer), last: at(2, integer) });
  const Narrow = message({ id: at(1, text), last: at(2, integer) });
  const bytes = Wide.encode({ id: 'x', other: 'y'.repeat(200), number: 300, last: 5 });
  t.deepEqual(Narrow.decode(bytes), { id: 'x', last: 5 });
  t.deepEqual(
    Narrow.decode(Buffer.concat([Buffer.from('3d01020304', 'hex'), Buffer.from('390102030405060708', 'hex'), bytes])),
    {
      ...{ id: 'x', last: 5 },
    },
  );
  for (let length = 1; length < 3; length += 1)
    t.throws(() => Narrow.decode(bytes.subarray(0, length)), { instanceOf: RangeError });
});

const Item = message({ id: at(1, text), state: at(2, integer), createdAt: at(3, integer), labels: at(4, textMap) });
const Items = message({
  items: at(1, {
    write: (writer, field, values: Buffer[]) => values.map((value) => writer.bytes(field, value)),
    read: () => [],
  }),
});

test('unchanged items of a list are the same objects, in any order of the items and their labels', (t) => {
  let decoded = 0;
  const cache = new ListCache(2, (bytes) => {
    decoded += 1;
    const { id = '', state = 0, createdAt = 0 } = Item.decode(bytes);
    return { id, state, createdAt };
  });
  const request = Buffer.alloc(0);
  const item = (id: string, state: number, labels: Record<string, string>) =>
    Item.encode({ id, state, createdAt: Number(id), labels });
  const first = cache.read(request, Items.encode({ items: [item('1', 0, { a: 'b', c: 'd' }), item('2', 1, {})] }));
  t.deepEqual(
    first.map(({ id }) => id),
    ['2', '1'],
  );
  t.is(cache.read(request, Items.encode({ items: [item('2', 1, {}), item('1', 0, { c: 'd', a: 'b' })] })), first);
  t.is(decoded, 2);
  const changed = cache.read(request, Items.encode({ items: [item('1', 1, { a: 'b', c: 'd' }), item('2', 1, {})] }));
  t.not(changed, first);
  t.is(changed[0], first[0]);
  t.is(changed[1]?.state, 1);
  t.is(decoded, 3);
  t.is(cache.read(request, Items.encode({ items: [item('2', 1, {})] })).length, 1);
  cache.read(request, Items.encode({ items: [item('1', 1, { a: 'b', c: 'd' })] }));
  t.is(decoded, 4, 'items that left the list of everything are removed from the cache');
});

test('a container with an unknown exit status is distinguished from one that ended', (t) => {
  const ended = (exitCode: number, reason: string) => {
    const status = fromContainerStatus(
      { id: 'c', state: 2, exitCode, reason, finishedAt: 5 },
      { info: '{"sandboxID":"s"}' },
    );
    return [status.exitCode, status.reason, status.signal, status.sandboxId];
  };
  t.deepEqual(ended(255, 'Unknown'), [137, 'ContainerStatusUnknown', undefined, 's']);
  t.deepEqual(ended(255, 'Error'), [255, 'Error', undefined, 's']);
  t.deepEqual(ended(137, 'OOMKilled'), [137, 'OOMKilled', 'SIGKILL', 's']);
});

test('a container whose end containerd recorded before its start has ended at its start', (t) => {
  const ended = { id: 'c', state: 2, reason: 'Completed', startedAt: 2000, finishedAt: 1990 };
  t.like(fromContainerStatus(ended, undefined), { startedAt: 2000, finishedAt: 2000 });
  t.like(fromContainerStatus({ ...ended, finishedAt: 2010 }, undefined), { startedAt: 2000, finishedAt: 2010 });
  const notStarted = fromContainerStatus({ ...ended, reason: 'StartError' }, undefined);
  t.like(notStarted, { startedAt: undefined, finishedAt: 1990 });
});

test('a filter without conditions is encoded as the list of everything', (t) => {
  t.is(ListContainersRequest.encode({ filter: undefined }).length, 0);
});

test('endpoints are socket paths and network addresses', (t) => {
  t.deepEqual(parseEndpoint('/run/x.sock'), { target: 'unix:///run/x.sock', local: true });
  t.deepEqual(parseEndpoint('unix:///run/x.sock'), { target: 'unix:///run/x.sock', local: true });
  t.deepEqual(parseEndpoint('unix:/run/x.sock'), { target: 'unix:///run/x.sock', local: true });
  t.deepEqual(parseEndpoint('tcp://127.0.0.1:3735'), { target: 'dns:127.0.0.1:3735', local: true });
  t.deepEqual(parseEndpoint('tcp://192.0.2.1:3735'), { target: 'dns:192.0.2.1:3735', local: false });
});

test('errors of the daemon are distinguished by their code, and by their text where the code is unknown', (t) => {
  const codeOf = (code: number, details: string) => translateCriError({ code, details }).code;
  const unknown = 2;
  t.is(codeOf(5, 'anything'), 'NotFound');
  t.is(codeOf(12, 'unknown method'), 'Unsupported');
  t.is(codeOf(14, 'No connection established'), 'Unavailable');
  t.is(
    codeOf(unknown, 'failed to reserve sandbox name "a_b_c_0": name "a_b_c_0" is reserved for "1"'),
    'AlreadyExists',
  );
  t.is(codeOf(unknown, 'pod sandbox with name "x" already exists, name is reserved for y'), 'AlreadyExists');
  t.is(codeOf(unknown, 'container is in CONTAINER_EXITED state'), 'InvalidState');
  t.is(codeOf(unknown, 'server is not initialized yet'), 'Unavailable');
  t.is(codeOf(unknown, 'something else'), 'Internal');
  const own = new RuntimeError('Aborted', 'x');
  t.is(translateCriError(own), own);
  t.is(translateCriError(new TypeError('y')).code, 'Internal');
});

test('the status at the end of a stream determines the exit code of the command', (t) => {
  const failure = (message: string, causes: object[] = []) =>
    JSON.stringify({ status: 'Failure', message, details: { causes } });
  t.deepEqual(parseSessionEnd('{"metadata":{},"status":"Success"}'), { exitCode: 0 });
  t.deepEqual(parseSessionEnd(failure('x', [{ reason: 'ExitCode', message: '42' }])), { exitCode: 42 });
  t.deepEqual(parseSessionEnd(failure('exec: "x": executable file not found in $PATH')), { exitCode: 127 });
  t.deepEqual(parseSessionEnd(failure('permission denied')), { exitCode: 126 });
  t.deepEqual(parseSessionEnd('no json'), { exitCode: 126 });
});

test('SPDY frames are read once they are complete', (t) => {
  const bytes = Buffer.from('00000003' + '01000002' + '6869' + '8003' + '0006' + '00000004' + '00000001', 'hex');
  for (let length = 0; length < 10; length += 1) t.is(readFrame(bytes.subarray(0, length)), undefined);
  const first = readFrame(bytes);
  t.deepEqual(first, { frame: { kind: 'data', streamId: 3, last: true, content: Buffer.from('hi') }, length: 10 });
  const ping = { kind: 'control', type: 6, last: false, content: Buffer.from('00000001', 'hex') };
  t.deepEqual(readFrame(bytes.subarray(10)), { frame: ping, length: 12 } as never);
  const blocks = new HeaderBlocks();
  t.is(hex(blocks.write({ A: 'b' })), '7801' + '000e00f1ff' + '00000001' + '0000000161' + '0000000162' + '000000ffff');
  t.is(hex(blocks.write({})), '000400fbff' + '00000000' + '000000ffff', 'one stream of compression for all blocks');
});
