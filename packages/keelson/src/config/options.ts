import { resolve } from 'node:path';
import { type AnyOption, bool, integer, listOf, oneOf, valueType } from '@keelson/core/internal';
import type { ServiceServerOptions } from '../service-addresses/address-range.ts';
import { admissionPluginNames, checkPluginNames } from './admission-plugins.ts';
import { type AuditFlags, auditRows } from './audit-options.ts';
import { type AuthenticationFlags, authenticationRows } from './authentication-options.ts';
import { type AuthorizationConfig, authorizationRows } from './authorization-options.ts';
import { type ConnectionLimits, parseConnectionLimits } from './connection-limits.ts';
import { type FlowControlChoice, parseFlowControl } from './flow-control.ts';
import { type MemoryBudgets, parseMemoryBudgets } from './memory-budgets.ts';
import { brand, controllerNames, type Declared, hosts, listenAddress, modules, path, storage } from './option-types.ts';
import { type ServiceAccountServerOptions, serviceAccountOptions } from './service-account-options.ts';
import { type ServiceUpOptions, serviceOptions } from './service-options.ts';
import {
  type HistoryWindow,
  parseHistory,
  parseWatchWindow,
  type ReadMode,
  readMode,
  readModes,
  type StorageChoice,
  type WatchWindow,
} from './storage-choice.ts';

/** The options of `keelson serve` and `keelson up`, merged from all sources. */
export interface ServerOptions
  extends AuditFlags,
    AuthenticationFlags,
    AuthorizationConfig,
    ServiceAccountServerOptions,
    ServiceServerOptions,
    ServiceUpOptions {
  /** One store (a URL, or an adapter with its options), or a default store and routes for kinds in other stores. */
  readonly storage: StorageChoice;
  /** The history window of every store without its own setting. */
  readonly history?: HistoryWindow;
  /** Limits of the latest changes that the watch caches keep in memory, per kind and in total. */
  readonly watchWindow?: WatchWindow;
  /** Memory for data that is kept to save repeated work, of the whole server. */
  readonly memoryBudgets?: MemoryBudgets;
  /** The state that gets and lists without a resourceVersion return, for every store without its own setting. */
  readonly reads: ReadMode;
  /** Accept a store other than the one recorded in the data directory. */
  readonly acceptNewStore: boolean;
  /** The controllers that run in this process. Undefined: the default of the command. */
  readonly controllers?: readonly string[];
  /** Run a node agent beside the server; an option of `keelson up`. Undefined: the default of the command. */
  readonly agent?: boolean;
  /** Number of nodes of `keelson up` that run pods as processes of the machine. */
  readonly nodes?: number;
  /** Number of nodes of `keelson up` whose pods run nothing. */
  readonly fakeNodes?: number;
  /** File with the authorities of node agents' certificates. Undefined: the authority of the data directory. */
  readonly agentCertificateAuthority?: string;
  /** File with a serving certificate for names that the server's own certificate does not contain, and its key. */
  readonly tlsCertFile?: string;
  /** Further names and addresses in the certificate that the server issues for itself. */
  readonly tlsExtraNames: readonly string[];
  readonly tlsPrivateKeyFile?: string;
  /** False: the serving certificates of node agents are not verified. */
  readonly verifyAgentCertificates: boolean;
  readonly listen: ListenAddress;
  /** Threads that serve the connections. 0: the main thread serves them. */
  readonly workers: number;
  /** Plain HTTP without authentication, loopback only. */
  readonly insecure: boolean;
  /** Built-in admission plugins that are left out. */
  readonly disableAdmissionPlugins: readonly string[];
  /** Host names without ports that the insecure server accepts in addition to those of the loopback interface. */
  readonly allowedHosts: readonly string[];
  /** File with an EncryptionConfiguration. Undefined: objects are stored without encryption. */
  readonly encryptionProviderConfig?: string;
  /** Directory for certificates, the kubeconfig, keys and (by default) the store. */
  readonly data: string;
  /** Modules whose default export is a kind or a list of kinds, served in addition to the built-in kinds. */
  readonly kinds: readonly string[];
  readonly logLevel: LogLevel;
  /** Spans and metrics are passed to the OpenTelemetry SDK that is loaded before the program. */
  readonly openTelemetry: boolean;
  readonly brand: { readonly vendor: string; readonly metaGroup: string };
  /** Limits on the connections of clients and timeouts of their states. */
  readonly connectionLimits?: Partial<ConnectionLimits>;
  /** Limits on concurrent requests and their division among users. */
  readonly flowControl?: FlowControlChoice;
  /** Lifetime of the continue token of a chunked list. */
  readonly continueTokenLifetimeMs: number;
}

export interface ListenAddress {
  readonly host: string;
  /** Port number. 0: the operating system chooses the port. */
  readonly port: number;
}

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

/** Every option except --config, which config files do not contain. */
const declared: { readonly [K in keyof ServerOptions]-?: Declared<ServerOptions[K] | undefined> } = {
  storage: {
    flag: '--storage',
    variable: 'KEELSON_STORAGE',
    type: storage,
    default: undefined,
    shownDefault: 'lmdb: under --data',
    help: 'memory: | lmdb:PATH | etcd://H:P[,H:P...] | postgres://...',
  },
  reads: {
    flag: '--reads',
    variable: 'KEELSON_READS',
    type: readMode,
    default: 'consistent',
    help: `${readModes.join(' | ')}: state that a get or list without resourceVersion returns, the newest or the cached one`,
  },
  history: {
    type: valueType('HISTORY', parseHistory),
    default: undefined,
    shownDefault: 'minChanges: 1000, minAge: 5m',
    help: 'history kept for watches and pages, by count and by age, whichever keeps more; not supported by every adapter',
  },
  watchWindow: {
    type: valueType('WINDOW', parseWatchWindow),
    default: undefined,
    shownDefault: 'maxEvents: 20000, maxBytes: 33554432, maxTotalBytes: 134217728, maxAge: 5m',
    help: 'changes kept in memory for watches, per kind (maxTotalBytes: in total); older ones are read from the store',
  },
  memoryBudgets: {
    type: valueType('BUDGETS', parseMemoryBudgets),
    default: undefined,
    shownDefault: [
      'derivedFormsBytes: 33554432, watchFramesBytes: 16777216, listBlocksBytes: 67108864',
      'selectorIndexesBytes: 67108864, listBuffersBytes: 4194304, compressedListsBytes: 16777216, recentBodiesBytes: 4194304',
    ].join(', '),
    help: 'memory, in bytes, for data that is kept to save repeated work; a smaller budget costs CPU time',
  },
  acceptNewStore: {
    flag: '--accept-new-store',
    variable: 'KEELSON_ACCEPT_NEW_STORE',
    type: bool,
    default: false,
    help: 'accept a store that differs from the one previously used under the same name',
  },
  controllers: {
    flag: '--controllers',
    variable: 'KEELSON_CONTROLLERS',
    type: controllerNames,
    default: undefined,
    shownDefault: 'api with serve, * with up',
    help: 'controllers of this process: *, NAME, -NAME, api (those of the API itself), ./MODULE.js; false: none',
  },
  agent: {
    flag: '--agent',
    variable: 'KEELSON_AGENT',
    type: bool,
    default: undefined,
    shownDefault: 'true with up',
    help: 'keelson up only: run the pods of nodes as processes of this machine; --agent=false disables these nodes',
  },
  nodes: {
    flag: '--nodes',
    variable: 'KEELSON_NODES',
    type: integer('N', 0, 100),
    default: undefined,
    shownDefault: '1 with up',
    help: 'keelson up only: number of nodes whose pods are processes of this machine',
  },
  fakeNodes: {
    flag: '--fake-nodes',
    variable: 'KEELSON_FAKE_NODES',
    type: integer('N', 0, 5_000),
    default: undefined,
    shownDefault: '0 with up',
    help: 'keelson up only: number of nodes whose pods are reported as running without running anything',
  },
  agentCertificateAuthority: {
    flag: '--agent-certificate-authority',
    variable: 'KEELSON_AGENT_CERTIFICATE_AUTHORITY',
    type: path('FILE'),
    default: undefined,
    shownDefault: 'ca.crt of the data directory',
    help: 'authorities of the serving certificates of node agents (PEM)',
  },
  tlsCertFile: {
    flag: '--tls-cert-file',
    variable: 'KEELSON_TLS_CERT_FILE',
    type: path('FILE'),
    default: undefined,
    help: 'certificate (PEM, with intermediates) for clients that connect to a name which server.crt does not contain',
  },
  tlsExtraNames: {
    flag: '--tls-extra-names',
    variable: 'KEELSON_TLS_EXTRA_NAMES',
    type: hosts,
    default: [],
    help: 'further names and addresses in server.crt, such as the name of a service of another cluster',
  },
  tlsPrivateKeyFile: {
    flag: '--tls-private-key-file',
    variable: 'KEELSON_TLS_PRIVATE_KEY_FILE',
    type: path('FILE'),
    default: undefined,
    help: 'key of --tls-cert-file (PEM)',
  },
  verifyAgentCertificates: {
    flag: '--verify-agent-certificates',
    variable: 'KEELSON_VERIFY_AGENT_CERTIFICATES',
    type: bool,
    default: true,
    help: 'verify the serving certificates of node agents; false for agents that have not joined with a bootstrap file',
  },
  listen: {
    flag: '--listen',
    variable: 'KEELSON_LISTEN',
    type: listenAddress,
    default: { host: '127.0.0.1', port: 6443 },
    help: 'address to serve on; with port 0 the system chooses the port',
  },
  workers: {
    flag: '--workers',
    variable: 'KEELSON_WORKERS',
    type: integer('N', 0, 256),
    default: 0,
    help: 'keelson serve only: threads that serve the connections; 0: the main thread serves them',
  },
  insecure: {
    flag: '--insecure',
    variable: 'KEELSON_INSECURE',
    type: bool,
    default: false,
    help: 'plain HTTP without authentication; loopback addresses only',
  },
  allowedHosts: {
    flag: '--allowed-host',
    variable: 'KEELSON_ALLOWED_HOSTS',
    type: hosts,
    default: [],
    help: 'host name or address that --insecure accepts in addition to localhost, 127.0.0.0/8 and [::1], without a port',
  },
  disableAdmissionPlugins: {
    flag: '--disable-admission-plugins',
    variable: 'KEELSON_DISABLE_ADMISSION_PLUGINS',
    type: listOf('NAME', (name, source) => {
      checkPluginNames([name], source);
      return name;
    }),
    default: [],
    help: `built-in admission plugins that are left out: ${admissionPluginNames.join(', ')}`,
  },
  ...authenticationRows,
  ...authorizationRows,
  ...serviceAccountOptions,
  ...serviceOptions,
  data: {
    flag: '--data',
    variable: 'KEELSON_DATA',
    type: path('DIR'),
    default: resolve('.keelson'),
    shownDefault: './.keelson',
    help: 'directory of certificates, kubeconfig and the embedded store',
  },
  kinds: {
    flag: '--kinds',
    variable: 'KEELSON_KINDS',
    type: modules,
    default: [],
    help: 'module that exports kinds to serve in addition to the built-in ones',
  },
  logLevel: {
    flag: '--log-level',
    variable: 'KEELSON_LOG_LEVEL',
    type: oneOf('LEVEL', logLevels),
    default: 'info',
    help: logLevels.join(' | '),
  },
  openTelemetry: {
    flag: '--opentelemetry',
    variable: 'KEELSON_OPENTELEMETRY',
    type: bool,
    default: false,
    help: 'pass spans and metrics to the OpenTelemetry SDK that NODE_OPTIONS=--import=MODULE loads',
  },
  brand: {
    type: brand,
    default: { vendor: 'kubernetes', metaGroup: 'meta.k8s.io' },
    help: 'names used in media types and as the group of the metadata API',
  },
  connectionLimits: {
    type: valueType('LIMITS', parseConnectionLimits),
    default: undefined,
    shownDefault: [
      'connections: 3/4 of the descriptors, connectionsPerAddress: 3/4 of connections, streams: 100',
      'streamResetBurst: 200, streamResetsPerSecond: 50, handshake: 10s, idle: 90s, headers: 10s, request: 60s',
      'unreadAnswer: 2m, linger: 10s, ping: 30s',
    ].join(', '),
    help: 'limits of connections and streams, and timeouts of their states; idle connections are closed for new ones',
  },
  flowControl: {
    type: valueType('LIMITS', parseFlowControl),
    default: undefined,
    shownDefault: [
      'requestsInFlight: 600, watches: 20000, watchesPerUser: 1000, connects: 5000, connectsPerUser: 1000',
      'queueLength: 50, levelQueueLength: 1000, queueWait: 15s, requestTimeout: 1m, watchTimeout: 30m',
      'levels and schemas: those of kube-apiserver',
    ].join(', '),
    help: 'limits on concurrent requests, their division among users by priority levels and flow schemas, and timeouts',
  },
  continueTokenLifetimeMs: {
    type: integer('MS', 1, Number.MAX_SAFE_INTEGER),
    default: 300_000,
    help: 'lifetime of a continue token in milliseconds',
  },
  encryptionProviderConfig: {
    flag: '--encryption-provider-config',
    variable: 'KEELSON_ENCRYPTION_PROVIDER_CONFIG',
    type: path('FILE'),
    default: undefined,
    help: 'apiserver.config.k8s.io/v1 EncryptionConfiguration: kinds whose objects are encrypted in the store, and the keys',
  },
  ...auditRows,
};

/** Every option of `keelson serve`, `up` and `verify`, from which parsers and documentation are derived. */
export const optionTable: readonly AnyOption[] = [
  {
    name: 'config',
    flag: '--config',
    variable: 'KEELSON_CONFIG',
    type: path('FILE'),
    default: undefined,
    help: 'YAML or JSON file with the keys of this table',
  },
  ...Object.entries<Declared<unknown>>(declared).map(([name, row]) => ({ name, field: name, ...row })),
];
