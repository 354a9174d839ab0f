import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { getServers } from 'node:dns';
import { type AddressInfo, createServer, isIP, isIPv6, type Server, type Socket } from 'node:net';
import type { Clock, Logger, Service as RunningService } from '@keelson/core/runtime';
import * as wire from 'dns-packet';
import {
  AUTHORITATIVE_ANSWER,
  type Packet,
  RECURSION_AVAILABLE,
  RECURSION_DESIRED,
  TRUNCATED_RESPONSE,
} from 'dns-packet';
import type { ServiceTable } from '../routes/service-table.ts';
import { ClusterNames, type Reply } from './cluster-names.ts';
import { forwardQuery, framed, messagesIn, type Resolver } from './forward-query.ts';

/** Options of a {@link DnsServer}. */
export interface DnsServerOptions {
  readonly table: ServiceTable;
  /** The domain of the cluster. Default `cluster.local`. */
  readonly domain?: string;
  readonly listen: { readonly host: string; readonly port: number };
  /** Servers for all other names. Default: those of the machine. */
  readonly resolvers?: readonly Resolver[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Maximum number of queries that are forwarded at the same time; further ones get SERVFAIL. */
const maxForwarded = 1_000;
const maxConnections = 200;
/** A TCP connection without a query for this time is closed. */
const idleMs = 10_000;
/** Size of an answer over UDP without EDNS, and the largest one with it that is not fragmented. */
const plainBytes = 512;
const largestBytes = 1232;
const negativeTtl = 5;
const codes = { NOERROR: 0, FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5 } as const;

/** Answers names of services and pods over UDP and TCP. All other queries go to the servers of the machine. */
export class DnsServer implements RunningService {
  readonly name = 'dns-server';
  readonly #options: DnsServerOptions;
  readonly #names: ClusterNames;
  readonly #udp: UdpSocket;
  readonly #tcp: Server;
  readonly #sockets = new Set<Socket>();
  #resolvers: readonly Resolver[] = [];
  #forwarded = 0;
  #stopped = false;

  constructor(options: DnsServerOptions) {
    this.#options = options;
    const { table, domain = 'cluster.local', listen } = options;
    this.#names = new ClusterNames(table, domain);
    this.#udp = createSocket(isIPv6(listen.host) ? 'udp6' : 'udp4');
    this.#tcp = createServer((socket) => this.#accept(socket));
    this.#tcp.maxConnections = maxConnections;
  }

  get port(): number {
    return (this.#tcp.address() as AddressInfo | null)?.port ?? 0;
  }

  /** Rejects when the address cannot be used. The table must have been started. */
  async start(): Promise<void> {
    const { host, port } = this.#options.listen;
    await new Promise<void>((resolve, reject) => {
      this.#tcp.once('error', reject);
      this.#tcp.listen({ host, port }, () => {
        this.#tcp.off('error', reject);
        resolve();
      });
    });
    await new Promise<void>((resolve, reject) => {
      this.#udp.once('error', reject);
      this.#udp.bind(this.port, host, () => {
        this.#udp.off('error', reject);
        resolve();
      });
    });
    const own = `${host}:${this.port}`;
    const { resolvers = machineResolvers() } = this.#options;
    // If the resolver of the machine is this server, queries would be forwarded to this server itself.
    this.#resolvers = resolvers.filter((one) => `${one.address}:${one.port}` !== own);
    this.#udp.on('error', (err) => this.#options.logger.debug('an answer was not sent', { err }));
    this.#udp.on('message', (query, from) => {
      void this.#answer(query, 'udp').then((answer) => {
        if (answer !== undefined && !this.#stopped) this.#udp.send(answer, from.port, from.address);
      });
    });
  }

  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#tcp.close(() => resolve()));
    await new Promise<void>((resolve) => this.#udp.close(() => resolve()));
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => this.#sockets.delete(socket));
    socket.setTimeout(idleMs, () => socket.destroy());
    let received = Buffer.alloc(0);
    let answering = Promise.resolve();
    socket.on('data', (data: Buffer) => {
      received = Buffer.concat([received, data]);
      for (;;) {
        const [query, rest] = messagesIn(received);
        received = Buffer.from(rest);
        if (query === undefined) return;
        // Answers are written one after the other, and further queries are not read meanwhile.
        socket.pause();
        answering = answering
          .then(() => this.#answer(query, 'tcp'))
          .then((answer) => {
            if (answer === undefined) socket.destroy();
            else if (!socket.destroyed) socket.write(framed(answer));
            socket.resume();
          });
      }
    });
  }

  /** Returns the answer to a query; undefined for bytes that are no query, which get no answer. Never rejects. */
  async #answer(query: Buffer, transport: 'udp' | 'tcp'): Promise<Buffer | undefined> {
    let packet: wire.DecodedPacket;
    try {
      packet = wire.decode(query);
    } catch {
      return query.length < 12 ? undefined : failure(query, codes.FORMERR);
    }
    if (packet.type === 'response') return undefined;
    const [question, ...more] = packet.questions ?? [];
    // The operation is in bits 3 to 6; 0 is a query.
    if ((query[2] ?? 0) & 0x78) return failure(query, codes.NOTIMP);
    if (question === undefined || more.length > 0) return failure(query, codes.FORMERR);
    if (!this.#names.contains(question.name)) return this.#forward(query, transport);
    if (question.class !== 'IN' && question.class !== 'ANY') return failure(query, codes.REFUSED);
    try {
      return this.#encode(packet, question, this.#names.resolve(question.name, question.type), transport);
    } catch (err) {
      this.#options.logger.warn('a query could not be answered', { name: question.name, err });
      return failure(query, codes.SERVFAIL);
    }
  }

  #encode(packet: wire.DecodedPacket, question: wire.Question, reply: Reply, transport: 'udp' | 'tcp'): Buffer {
    const edns = packet.additionals?.find((record) => record.type === 'OPT');
    const flags = AUTHORITATIVE_ANSWER | RECURSION_AVAILABLE | ((packet.flags ?? 0) & RECURSION_DESIRED);
    const answer: Packet = {
      type: 'response',
      id: packet.id ?? 0,
      flags: flags | codes[reply.code],
      questions: [question],
      answers: [...reply.answers],
      authorities: reply.answers.length === 0 ? [this.#authority()] : [],
      additionals: [
        ...reply.additionals,
        ...(edns
          ? [{ type: 'OPT' as const, name: '.', udpPayloadSize: largestBytes, flags: 0, options: [] } as never]
          : []),
      ],
    };
    const bytes = wire.encode(answer);
    const asked = edns?.type === 'OPT' ? edns.udpPayloadSize : plainBytes;
    const limit = Math.min(Math.max(asked, plainBytes), largestBytes);
    if (transport === 'tcp' || bytes.length <= limit) return bytes;
    // Additional records only save clients further queries, so that they are omitted before the answer is truncated.
    const short = wire.encode({ ...answer, additionals: [] });
    if (short.length <= limit) return short;
    const cut = { ...answer, flags: answer.flags ?? 0, answers: [], authorities: [], additionals: [] };
    return wire.encode({ ...cut, flags: cut.flags | TRUNCATED_RESPONSE });
  }

  #authority(): wire.Answer {
    const { domain } = this.#names;
    const data = { mname: `ns.dns.${domain}`, rname: `hostmaster.${domain}`, serial: 1 };
    const times = { refresh: 7200, retry: 1800, expire: 86_400, minimum: negativeTtl };
    return { type: 'SOA', name: domain, ttl: negativeTtl, data: { ...data, ...times } };
  }

  async #forward(query: Buffer, transport: 'udp' | 'tcp'): Promise<Buffer> {
    if (this.#forwarded >= maxForwarded || this.#resolvers.length === 0) return failure(query, codes.SERVFAIL);
    this.#forwarded += 1;
    try {
      return (await forwardQuery(query, transport, this.#resolvers)) ?? failure(query, codes.SERVFAIL);
    } finally {
      this.#forwarded -= 1;
    }
  }
}

/** An error as the answer to a query. Clients accept it only with the question, if that can be read. */
function failure(query: Buffer, code: number): Buffer {
  const flags = RECURSION_AVAILABLE | (query.readUInt16BE(2) & RECURSION_DESIRED) | code;
  const answer: Packet = { type: 'response', id: query.readUInt16BE(), flags };
  try {
    return wire.encode({ ...answer, questions: wire.decode(query).questions ?? [] });
  } catch {
    return wire.encode(answer);
  }
}

/** The servers of the machine; entries have the form `1.2.3.4`, `1.2.3.4:53`, `::1` or `[::1]:53`. */
function machineResolvers(): Resolver[] {
  return getServers().map((text) => {
    const [, address = text, port = '53'] = isIP(text) === 0 ? (/^\[?(.+?)\]?:(\d+)$/.exec(text) ?? []) : [];
    return { address, port: Number(port) };
  });
}
