import type { ConnectionLimits } from './connection-limits.ts';
import {
  type HistoryWindow,
  type ReadMode,
  readModes,
  type StorageChoice,
  type WatchWindow,
} from './storage-choice.ts';

/** Everything `keelson serve` can be told, after all sources were merged. */
export interface ServerOptions {
  /** One store (a URL, or an adapter with its own options), or a default store and routes that send kinds to others. */
  readonly storage: StorageChoice;
  /** The history window of every store that does not have its own. */
  readonly history?: HistoryWindow;
  /** What the watch cache of every store keeps of the latest changes, per kind and in all. */
  readonly watchWindow?: WatchWindow;
  /** Which state answers gets and lists without a resourceVersion, on every store that does not say its own. */
  readonly reads: ReadMode;
  /** Go on when a store is not the one that the data directory knows under its name. */
  readonly acceptNewStore: boolean;
  /** Run the built-in controllers in this process; of several servers on one store one does. */
  readonly controllers: boolean;
  /** Run a node agent beside the server; means something for `keelson up` alone. Undefined: not said. */
  readonly agent?: boolean;
  /** File with the authorities of node agents' certificates. Undefined: their certificates are not checked. */
  readonly agentCertificateAuthority?: string;
  readonly listen: ListenAddress;
  /** Plain HTTP without authentication, loopback only. */
  readonly insecure: boolean;
  /** Hosts, without ports, that the insecure server is reached under beside those of the loopback interface. */
  readonly allowedHosts: readonly string[];
  /** File of bearer tokens and their users; undefined: no token is known. */
  readonly tokenAuthFile?: string;
  /** Directory for certificates, the kubeconfig, keys and (by default) the store. */
  readonly data: string;
  /** Modules whose default export is a kind or a list of kinds, served beside the built-in ones. */
  readonly kinds: readonly string[];
  readonly logLevel: LogLevel;
  readonly brand: { readonly vendor: string; readonly metaGroup: string };
  /** Bounds on the connections of clients and on the time of each state of their protocols. */
  readonly connectionLimits?: Partial<ConnectionLimits>;
  /** How long a continue token of a chunked list stays valid. */
  readonly continueTokenLifetimeMs: number;
}

export interface ListenAddress {
  readonly host: string;
  /** 0 = chosen by the operating system. */
  readonly port: number;
}

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

/**
 * One option: where it may be given and what it means. The table is the source of parser, help text and reference page.
 */
export interface OptionRow {
  /** Name in the config file. */
  readonly key: keyof ServerOptions | 'config';
  /** Name on the command line; absent = config file only. */
  readonly flag?: string;
  readonly env?: string;
  /** Word for the value in help; absent = a switch. */
  readonly value?: string;
  readonly repeatable?: boolean;
  readonly default: string;
  readonly help: string;
}

export const optionTable: readonly OptionRow[] = [
  {
    key: 'config',
    flag: '--config',
    env: 'KEELSON_CONFIG',
    value: 'FILE',
    default: '',
    help: 'YAML or JSON file with the keys of this table',
  },
  {
    key: 'storage',
    flag: '--storage',
    env: 'KEELSON_STORAGE',
    value: 'URL',
    default: 'lmdb: under --data',
    help: 'memory: | lmdb:PATH | etcd://H:P[,H:P...] | postgres://...',
  },
  {
    key: 'reads',
    flag: '--reads',
    env: 'KEELSON_READS',
    value: 'MODE',
    default: 'consistent',
    help: `${readModes.join(' | ')}: what a get or list without resourceVersion shows, the newest state or the cached one`,
  },
  {
    key: 'history',
    default: 'minChanges: 1000, minAge: 5m',
    help: 'history kept for watches and pages, by count and by age, whichever keeps more; for stores whose adapter takes it',
  },
  {
    key: 'watchWindow',
    default: 'maxEvents: 20000, maxBytes: 33554432, maxTotalBytes: 134217728, maxAge: 5m',
    help: 'latest changes kept in memory for watches: the first two for one kind, the third for all; older ones come from the history',
  },
  {
    key: 'acceptNewStore',
    flag: '--accept-new-store',
    env: 'KEELSON_ACCEPT_NEW_STORE',
    default: 'false',
    help: 'go on with a store that is not the one used before under the same name',
  },
  {
    key: 'controllers',
    flag: '--controllers',
    env: 'KEELSON_CONTROLLERS',
    default: 'true',
    help: 'run namespace deletion and garbage collection here; --controllers=false leaves them to another server',
  },
  {
    key: 'agent',
    flag: '--agent',
    env: 'KEELSON_AGENT',
    default: 'true with up',
    help: 'keelson up alone: run the pods of one node as processes of this machine; --agent=false leaves the node out',
  },
  {
    key: 'agentCertificateAuthority',
    flag: '--agent-certificate-authority',
    env: 'KEELSON_AGENT_CERTIFICATE_AUTHORITY',
    value: 'FILE',
    default: '',
    help: 'authorities, in PEM, of the certificates that node agents show to the server; without it any certificate will do',
  },
  {
    key: 'listen',
    flag: '--listen',
    env: 'KEELSON_LISTEN',
    value: 'HOST:PORT',
    default: '127.0.0.1:6443',
    help: 'address to serve on; port 0 lets the system choose',
  },
  {
    key: 'insecure',
    flag: '--insecure',
    env: 'KEELSON_INSECURE',
    default: 'false',
    help: 'plain HTTP without authentication; loopback addresses only',
  },
  {
    key: 'allowedHosts',
    flag: '--allowed-host',
    env: 'KEELSON_ALLOWED_HOSTS',
    value: 'HOST',
    repeatable: true,
    default: '',
    help: 'name or address, without port, that --insecure is reached under beside localhost, 127.0.0.0/8 and [::1]; others are refused',
  },
  {
    key: 'tokenAuthFile',
    flag: '--token-auth-file',
    env: 'KEELSON_TOKEN_AUTH_FILE',
    value: 'FILE',
    default: 'none',
    help: 'bearer tokens that are taken, one `token,user,uid,"group1,group2"` a line; read when the server starts',
  },
  {
    key: 'data',
    flag: '--data',
    env: 'KEELSON_DATA',
    value: 'DIR',
    default: './.keelson',
    help: 'certificates, kubeconfig and the embedded store',
  },
  {
    key: 'kinds',
    flag: '--kinds',
    env: 'KEELSON_KINDS',
    value: 'MODULE',
    repeatable: true,
    default: '',
    help: 'module that exports kinds to serve beside the built-in ones',
  },
  {
    key: 'logLevel',
    flag: '--log-level',
    env: 'KEELSON_LOG_LEVEL',
    value: 'LEVEL',
    default: 'info',
    help: logLevels.join(' | '),
  },
  {
    key: 'brand',
    default: 'vendor: kubernetes, metaGroup: meta.k8s.io',
    help: 'words in media types and in the metadata group',
  },
  {
    key: 'connectionLimits',
    default: [
      'connections: 3/4 of the descriptors, connectionsPerAddress: 3/4 of connections, streams: 100, streamResetBurst: 200',
      'streamResetsPerSecond: 50, handshake: 10s, idle: 90s, headers: 10s, request: 60s, unreadAnswer: 2m, linger: 10s, ping: 30s',
    ].join(', '),
    help: 'bounds on connections, on the streams of one, and on the time of each state; idle connections make room for new ones',
  },
  { key: 'continueTokenLifetimeMs', default: '300000', help: 'life of a continue token in milliseconds' },
];
