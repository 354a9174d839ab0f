import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import { Service } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { decode, encode, type Packet, type RecordType, streamDecode, streamEncode } from 'dns-packet';
import { DnsServer } from '../src/index.ts';
import { addService, type Cluster, cluster } from './support/cluster.ts';

const domain = 'cluster.local';

/** A name server of the host that responds to each query with one address and the name `upstream`. */
async function upstream(t: ExecutionContext): Promise<{ address: string; port: number }> {
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    const { id = 0, questions = [] } = decode(query);
    const name = questions[0]?.name ?? '';
    const answers = [{ type: 'A' as const, name, ttl: 1, data: '192.0.2.53' }];
    socket.send(encode({ type: 'response', id, questions, answers }), from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  t.teardown(() => socket.close());
  return { address: '127.0.0.1', port: socket.address().port };
}

async function start(t: ExecutionContext): Promise<{ here: Cluster; port: number }> {
  const here = await cluster(t);
  // The first server does not respond: nothing listens there.
  const resolvers = [{ address: '127.0.0.1', port: 1 }, await upstream(t)];
  const server = new DnsServer({
    ...{ table: here.table, domain, resolvers, clock: systemClock, logger: silentLogger },
    listen: { host: '127.0.0.1', port: 0 },
  });
  await server.start();
  t.teardown(() => server.stop());
  return { here, port: server.port };
}

const query = (name: string, type: RecordType, more: Partial<Packet> = {}): Packet => ({
  ...{ type: 'query', id: 4711, flags: 0x100, questions: [{ type, name }] },
  ...more,
});

async function exchange(port: number, bytes: Buffer): Promise<Buffer> {
  const socket = createSocket('udp4');
  try {
    // Datagrams may be lost even on loopback.
    return await until(async () => {
      socket.send(bytes, port, '127.0.0.1');
      const late = new Promise<undefined>((resolve) => setTimeout(resolve, 1000, undefined));
      return Promise.race([once(socket, 'message').then(([answer]) => answer as Buffer), late]);
    });
  } finally {
    socket.close();
  }
}

const ask = async (port: number, name: string, type: RecordType = 'A', more: Partial<Packet> = {}) =>
  decode(await exchange(port, encode(query(name, type, more))));

/** Code, and type and data of each record, as one line. */
async function line(port: number, name: string, type: RecordType = 'A'): Promise<string> {
  const {
    rcode,
    answers = [],
    authorities = [],
  } = (await ask(port, name, type)) as ReturnType<typeof decode> & {
    rcode: string;
  };
  const texts = answers.map((answer) => {
    const data = 'data' in answer ? answer.data : '';
    if (answer.type === 'SRV') return `SRV ${answer.data.port} ${answer.data.target}`;
    return `${answer.type} ${Array.isArray(data) ? data.join() : String(data)}`;
  });
  const soa = authorities.some((record) => record.type === 'SOA') ? ['(SOA)'] : [];
  return [rcode, ...texts.sort(), ...soa].join(' ');
}

test('services, endpoints and pods have the DNS records of the specification', async (t) => {
  const { here, port } = await start(t);
  await addService(
    here,
    'web',
    {
      ipFamilyPolicy: 'RequireDualStack',
      clusterIP: '127.97.0.1',
      clusterIPs: ['127.97.0.1', 'fd00::1'],
      ports: [{ name: 'http', port: 80 }],
    },
    [],
  );
  await addService(here, 'db', { clusterIP: 'None', ports: [{ name: 'pg', port: 5432 }] }, [
    { port: 5432, portName: 'pg', addresses: ['192.0.2.1'], hostname: 'db-0' },
    { port: 5433, portName: 'pg', addresses: ['192.0.2.2'] },
  ]);
  await addService(here, 'empty', { clusterIP: 'None', ports: [] }, []);
  await addService(here, 'alias', { type: 'ExternalName', externalName: 'example.com' }, []);
  await until(async () => (await line(port, 'alias.default.svc.cluster.local')).startsWith('NOERROR'));
  const cases: [name: string, type: RecordType, expected: string][] = [
    ['web.default.svc', 'A', 'NOERROR A 127.97.0.1'],
    ['WEB.Default.svc', 'A', 'NOERROR A 127.97.0.1'],
    ['web.default.svc', 'AAAA', 'NOERROR AAAA fd00::1'],
    ['web.default.svc', 'MX', 'NOERROR (SOA)'],
    ['_http._tcp.web.default.svc', 'SRV', 'NOERROR SRV 80 web.default.svc.cluster.local'],
    ['_http._udp.web.default.svc', 'SRV', 'NXDOMAIN (SOA)'],
    ['x.web.default.svc', 'A', 'NXDOMAIN (SOA)'],
    ['db.default.svc', 'A', 'NOERROR A 192.0.2.1 A 192.0.2.2'],
    ['db-0.db.default.svc', 'A', 'NOERROR A 192.0.2.1'],
    ['192-0-2-2.db.default.svc', 'A', 'NOERROR A 192.0.2.2'],
    ['db-1.db.default.svc', 'A', 'NXDOMAIN (SOA)'],
    [
      '_pg._tcp.db.default.svc',
      'SRV',
      'NOERROR SRV 5432 db-0.db.default.svc.cluster.local SRV 5433 192-0-2-2.db.default.svc.cluster.local',
    ],
    ['empty.default.svc', 'A', 'NXDOMAIN (SOA)'],
    ['alias.default.svc', 'A', 'NOERROR CNAME example.com'],
    ['10-1-2-3.default.pod', 'A', 'NOERROR A 10.1.2.3'],
    ['fd00--1.default.pod', 'AAAA', 'NOERROR AAAA fd00::1'],
    ['name.default.pod', 'A', 'NXDOMAIN (SOA)'],
    ['missing.default.svc', 'A', 'NXDOMAIN (SOA)'],
    ['default.svc', 'A', 'NOERROR (SOA)'],
    ['else.svc', 'A', 'NXDOMAIN (SOA)'],
    ['svc', 'A', 'NOERROR (SOA)'],
    ['dns-version', 'TXT', 'NOERROR TXT 1.1.0'],
  ];
  for (const [name, type, expected] of cases)
    t.is(await line(port, `${name}.${domain}`, type), expected, `${name} ${type}`);
  await here.api.resource(Service).namespace('default').delete('web');
  await until(async () => (await line(port, `web.default.svc.${domain}`)).startsWith('NXDOMAIN'));

  const resolver = new Resolver();
  resolver.setServers([`127.0.0.1:${port}`]);
  t.deepEqual(await resolver.resolve4(`db-0.db.default.svc.${domain}`), ['192.0.2.1']);
});

test('other names are forwarded to the name servers of the host', async (t) => {
  const { port } = await start(t);
  t.is(await line(port, 'example.com'), 'NOERROR A 192.0.2.53');
  t.is(await line(port, 'notcluster.local'), 'NOERROR A 192.0.2.53');
});

test('long responses are truncated over UDP and complete over TCP, where several queries share a connection', async (t) => {
  const { here, port } = await start(t);
  const addresses = Array.from({ length: 100 }, (_, i) => ({ port: 1, addresses: [`192.0.2.${i + 1}`] }));
  await addService(here, 'many', { clusterIP: 'None', ports: [{ port: 1 }] }, addresses);
  const name = `many.default.svc.${domain}`;
  await until(async () => (await ask(port, name)).flag_tc === true);
  const cut = await exchange(port, encode(query(name, 'A')));
  t.true(cut.length <= 512);
  t.deepEqual(decode(cut).answers, []);
  const edns = await ask(port, 'web.default.svc.cluster.local', 'A', {
    additionals: [{ type: 'OPT', name: '.', udpPayloadSize: 4096, flags: 0, options: [] } as never],
  });
  t.is(edns.additionals?.[0]?.type, 'OPT');

  const socket = connect(port, '127.0.0.1');
  t.teardown(() => socket.destroy());
  let received = Buffer.alloc(0);
  socket.on('data', (data: Buffer) => {
    received = Buffer.concat([received, data]);
  });
  socket.write(Buffer.concat([streamEncode(query(name, 'A')), streamEncode(query(name, 'AAAA', { id: 4712 }))]));
  const first = await until(() => received.length > 2 && received.length > 2 + received.readUInt16BE() && received);
  const size = 2 + first.readUInt16BE();
  t.is(streamDecode(first.subarray(0, size)).answers?.length, 100);
  await until(() => received.length >= size + 2 + received.readUInt16BE(size));
  t.is(streamDecode(received.subarray(size)).id, 4712);
});

test('malformed and unusual queries are rejected, and responses are ignored', async (t) => {
  const { port } = await start(t);
  const valid = encode(query(`web.default.svc.${domain}`, 'A'));
  const code = async (bytes: Buffer) => (await exchange(port, bytes)).readUInt8(3) & 0xf;
  t.is(await code(valid), 3);
  t.is(await code(valid.subarray(0, 20)), 1, 'a name that is cut off');
  const update = Buffer.from(valid);
  update[2] = 5 << 3;
  t.is(await code(update), 4);
  t.is(await code(encode(query('a', 'A', { questions: [] }))), 1);
  const silent = createSocket('udp4');
  t.teardown(() => silent.close());
  let answers = 0;
  silent.on('message', () => {
    answers += 1;
  });
  const response = Buffer.from(valid);
  response[2] = 0x80;
  for (const bytes of [response, Buffer.from([1, 2, 3])]) silent.send(bytes, port, '127.0.0.1');
  silent.send(valid, port, '127.0.0.1');
  await until(() => answers > 0);
  t.is(answers, 1);
  t.truthy((silent.address() as AddressInfo).port);
});
