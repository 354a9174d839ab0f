import { generateKeyPairSync } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createHttpClient } from '@keelson/client';
import { Namespace } from '@keelson/kinds';
import { buildGoTool, freePort } from '@keelson/test-support';
import { Load } from '../load/load.ts';
import { Spawned } from '../measure/spawned.ts';
import { keelson } from '../schedule/control-processes.ts';
import { keelsonReady } from '../stage.ts';
import { type Database, startDatabase } from '../stores/database.ts';

/** One of the servers that are compared. */
export interface PeerServer {
  readonly name: string;
  readonly port: number;
  /** Its own load process, so that watchers remain connected while other servers have their turn. */
  readonly load: Load;
  cpu(): { readonly server: number; readonly store: number };
  memory(): { readonly server: number; readonly store: number };
  stop(): Promise<void>;
}

/** A kind of server, and what it needs. */
export interface PeerKind {
  readonly name: string;
  readonly adapter: string;
  /** Programs that are built from Go modules, by the name of `test/tools`. */
  readonly programs: readonly (keyof typeof packages)[];
}

const packages = {
  'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver',
  kine: 'github.com/k3s-io/kine',
} as const;

/** Every server, in the order of the report; those of one adapter have the same kind of store. */
export const peerKinds: readonly PeerKind[] = [
  { name: 'Keelson memory', adapter: 'memory', programs: [] },
  { name: 'Keelson LMDB', adapter: 'lmdb', programs: [] },
  { name: 'Keelson etcd', adapter: 'etcd', programs: [] },
  { name: 'kube-apiserver etcd', adapter: 'etcd', programs: ['kube-apiserver'] },
  { name: 'Keelson Postgres', adapter: 'postgres', programs: [] },
  { name: 'kube-apiserver kine Postgres', adapter: 'postgres', programs: ['kube-apiserver', 'kine'] },
];

/** The etcd that is built from its modules, because kube-apiserver needs functions that distributions do not have. */
export const peerEtcd = 'newest';

/** Token of the user `bench`, whose requests a ClusterRoleBinding allows. */
export const benchToken = 'bench-user-token';
const adminToken = 'bench-admin-token';
const tokenFile = `${benchToken},bench,bench-uid\n${adminToken},bench-admin,bench-admin-uid,"system:masters"\n`;

const namespaces = ['bench', 'made', 'watched'];
const readyMs = 60_000;

/** The program, built from its Go module when this machine has not built it yet. */
const builtProgram = (name: keyof typeof packages): string => buildGoTool(name, packages[name]) ?? '';

/** Why a kind of server cannot be measured here; undefined when it can. Builds its programs. */
export function missingProgram({ programs }: PeerKind): string | undefined {
  const missing = programs.find((name) => builtProgram(name) === '');
  return missing === undefined ? undefined : `${missing} cannot be built from its Go module here`;
}

/** What must be stopped, in the reverse order of its start. */
type Stopping = (() => Promise<unknown>)[];

async function startProcesses(kind: PeerKind, folder: string, stopping: Stopping) {
  const tokens = join(folder, 'tokens.csv');
  await mkdir(folder, { recursive: true });
  await writeFile(tokens, tokenFile, { mode: 0o600 });
  const database = await startDatabase(kind.adapter, peerEtcd);
  if (database !== undefined) stopping.push(() => database.stop());
  if (kind.programs.length === 0) {
    const own = kind.adapter === 'memory' ? 'memory:' : `lmdb:${join(folder, 'store')}`;
    const data = ['--data', join(folder, 'data'), '--storage', database?.storage('bench') ?? own];
    const words = ['serve', '--listen', '127.0.0.1:0', ...data, '--token-auth-file', tokens, '--controllers', 'false'];
    const server = await Spawned.start(process.execPath, [keelson, ...words, '--log-level', 'error'], keelsonReady);
    stopping.push(() => server.stop());
    return { server, database, translator: undefined };
  }
  const translator = kind.programs.includes('kine') ? await startKine(database as Database) : undefined;
  if (translator !== undefined) stopping.push(() => translator.stop());
  const endpoint = translator === undefined ? (database?.url ?? '') : `http://127.0.0.1:${translator.port}`;
  const server = await startKubeApiServer(folder, tokens, endpoint);
  stopping.push(() => server.stop());
  return { server, database, translator };
}

/** Runs a program whose log on the error output says when it is ready. */
function startLogging(program: string, words: readonly string[], ready: RegExp): Promise<Spawned> {
  return Spawned.start('sh', ['-c', 'exec "$0" "$@" 2>&1', program, ...words], ready);
}

async function startKine(database: Database): Promise<Spawned> {
  const port = await freePort();
  const words = ['--endpoint', `${database.url}?sslmode=disable`, '--listen-address', `127.0.0.1:${port}`];
  const metrics = ['--metrics-bind-address', '0'];
  return startLogging(builtProgram('kine'), [...words, ...metrics], /Kine available at http:\/\/127\.0\.0\.1:(\d+)/);
}

async function startKubeApiServer(folder: string, tokens: string, etcd: string): Promise<Spawned> {
  const key = join(folder, 'service-accounts.key');
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  await writeFile(key, privateKey.export({ type: 'sec1', format: 'pem' }), { mode: 0o600 });
  const flags = {
    'etcd-servers': etcd,
    'secure-port': await freePort(),
    'bind-address': '127.0.0.1',
    'advertise-address': '127.0.0.1',
    'cert-dir': join(folder, 'certificates'),
    'token-auth-file': tokens,
    'authorization-mode': 'Node,RBAC',
    'service-account-issuer': 'https://kubernetes.default.svc',
    'service-account-key-file': key,
    'service-account-signing-key-file': key,
    'service-cluster-ip-range': '10.99.0.0/24',
    'endpoint-reconciler-type': 'none',
  };
  const words = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  return startLogging(builtProgram('kube-apiserver'), words, /Serving securely on 127\.0\.0\.1:(\d+)/);
}

/** Creates the namespaces, and the binding that allows everything to the user of the load. */
async function prepare(port: number): Promise<void> {
  const access = { server: `https://127.0.0.1:${port}`, insecureSkipTlsVerify: true };
  const admin = createHttpClient({ ...access, token: adminToken });
  const user = createHttpClient({ ...access, token: benchToken });
  try {
    for (const name of namespaces)
      await untilDone(() => admin.resource(Namespace).create({ metadata: { name } }), /exists/);
    const bindings = admin.dynamic({
      group: 'rbac.authorization.k8s.io',
      version: 'v1',
      resource: 'clusterrolebindings',
    });
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' };
    const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'bench' }];
    await untilDone(() => bindings.create({ metadata: { name: 'bench' }, roleRef, subjects } as never), /exists/);
    await untilDone(() => user.resource(Namespace).get('bench'));
  } finally {
    admin.close();
    user.close();
  }
}

/** Repeats what a server that is still starting rejects. */
async function untilDone(attempt: () => Promise<unknown>, isDone?: RegExp): Promise<void> {
  const until = performance.now() + readyMs;
  for (;;) {
    try {
      await attempt();
      return;
    } catch (error) {
      if (isDone?.test((error as Error).message)) return;
      if (performance.now() > until) throw error;
      await pause(100);
    }
  }
}

/** Starts a server with its store. */
export async function startPeer(kind: PeerKind, folder: string): Promise<PeerServer> {
  const stopping: Stopping = [];
  const stop = async () => {
    for (const end of stopping.splice(0).reverse()) await end();
  };
  try {
    const { server, database, translator } = await startProcesses(kind, folder, stopping);
    await prepare(server.port);
    const load = new Load();
    stopping.push(() => load.stop());
    return {
      name: kind.name,
      port: server.port,
      load,
      cpu: () => ({ server: server.cpu(), store: (database?.cpu() ?? 0) + (translator?.cpu() ?? 0) }),
      memory: () => ({ server: server.memory(), store: (database?.memory() ?? 0) + (translator?.memory() ?? 0) }),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
