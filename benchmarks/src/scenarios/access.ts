import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { KindDefinition } from '@keelson/core';
import { type AccessObject, bindings, reader, readObject, roles } from '../access-objects.ts';
import { httpRequest } from '../fixtures.ts';
import type { Spawned } from '../measure/spawned.ts';
import { requestRounds } from './request-rounds.ts';
import type { Scenario, Stage } from './scenario.ts';

const clients = 64;
const server = fileURLToPath(new URL('../access-server.js', import.meta.url));
const namespacePath = '/api/v1/namespaces/default';
const secret = { metadata: { name: 'made-{n}' }, data: { value: randomBytes(750).toString('base64') } };

/** Users of the servers with TLS, by their tokens. */
const tokens = `admin-token,admin,,system:masters\nreader-token,${reader},,readers\n`;
type Token = 'admin-token' | 'reader-token';

/** A request of the user of a token; without one, of the only user that plain HTTP has. */
function request(method: 'GET' | 'POST', path: string, body?: unknown, token?: Token): string {
  const authorization = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  const text = body === undefined ? undefined : JSON.stringify(body);
  return httpRequest(method, path, text, { 'User-Agent': 'bench/1', ...authorization });
}

const readPath = `${namespacePath}/configmaps/read`;

/** Files in a folder of their own that exists while `run` runs. */
async function withFiles<T>(files: Readonly<Record<string, string>>, run: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-bench-access-'));
  try {
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text, { mode: 0o600 });
    return await run(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface Side {
  readonly server: Spawned | Promise<Spawned>;
  readonly request: string;
}

/** Alternating slices of a request on a server without and one with what is measured. */
async function compared(stage: Stage, without: Side, subject: Side, tls = false) {
  const jobOf = (side: Side) => ({
    ...{ connections: clients, durationMs: stage.sliceMs, tls },
    requests: [side.request],
  });
  const servers = await Promise.all([without.server, subject.server]);
  try {
    return await requestRounds(stage, [servers[0], jobOf(without)], [servers[1], jobOf(subject)]);
  } finally {
    await Promise.all(servers.map((each) => each.stop()));
  }
}

/** With the stage that docs/how-to/audit.md omits, or with every stage: two events for each request. */
const policyWith = (everyStage: boolean) =>
  JSON.stringify({
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Policy',
    rules: [{ level: 'Metadata' }],
    omitStages: everyStage ? [] : ['RequestReceived'],
  });

type Audited = 'nothing' | 'responses' | 'every stage';

/**
 * Of 10,000 objects as many as 1,000 roles and 5,000 bindings. Both sides contain them, so that what their creation
 * leaves behind in the heap and in compiled code is no part of the difference.
 */
const countsOf = ({ objects }: Stage) => [Math.ceil(objects / 10), Math.ceil(objects / 2)] as const;

const getWith = (name: string, what: string, withRoles: boolean, audited: Audited): Scenario => ({
  name,
  what: `GET of an object ${what}, beside the same GET without authorization and audit, by plain HTTP`,
  goal: { form: 'times', mark: 1.06 },
  everyAdapter: false,
  run: (stage) =>
    withFiles({ policy: policyWith(audited === 'every stage') }, (folder) => {
      const counts = (withRoles ? countsOf(stage) : [0, 0]).map(String);
      const audit = audited === 'nothing' ? [] : [join(folder, 'policy'), join(folder, 'audit.log')];
      const start = (mode: 'allow' | 'roles', more: readonly string[]) =>
        stage.startProgram(process.execPath, [server, mode, ...counts, ...more]);
      const get = request('GET', readPath);
      return compared(
        stage,
        { server: start('allow', []), request: get },
        { server: start(withRoles ? 'roles' : 'allow', audit), request: get },
      );
    }),
});

/** Creates the object that is read, and so many roles and bindings, as the administrator of a server with TLS. */
async function fill(stage: Stage, { port }: Spawned, roleCount: number, bindingCount: number): Promise<void> {
  const post = (path: string, object: unknown) => request('POST', path, object, 'admin-token');
  const pathOf = ({ group, version, names, scope }: KindDefinition) =>
    `/apis/${group}/${version}${scope === 'Namespaced' ? '/namespaces/default' : ''}/${names.plural}`;
  const create = (requests: readonly string[]) =>
    stage.load.requests({ port, tls: true, connections: 16, count: requests.length, requests });
  const postOf = ({ kind, object }: AccessObject) => post(pathOf(kind), object);
  await create([post(`${namespacePath}/configmaps`, readObject), ...Array.from(roles(roleCount), postOf)]);
  // After the roles, because escalation is checked against roles that exist.
  await create(Array.from(bindings(bindingCount, roleCount), postOf));
}

/** Starts the default server, with TLS and RBAC, for the users of the token file. */
const startDefault = (stage: Stage, folder: string, words: readonly string[] = []) =>
  stage.start(['--token-auth-file', join(folder, 'tokens.csv'), ...words], false);

const getOfDefault = (name: string, what: string, audited: boolean): Scenario => ({
  name,
  what: `GET of an object ${what}, beside the same GET without authorization and audit, on servers with default options (TLS)`,
  goal: { form: 'times', mark: 1.06 },
  everyAdapter: false,
  run: (stage) =>
    withFiles({ policy: policyWith(false), 'tokens.csv': tokens }, async (folder) => {
      const audit = ['--audit-policy-file', join(folder, 'policy'), '--audit-log-path', join(folder, 'audit.log')];
      const filled = async (words: readonly string[]) => {
        const started = await startDefault(stage, folder, words);
        await fill(stage, started, ...countsOf(stage));
        return started;
      };
      const without = await filled(['--authorization-mode', 'AlwaysAllow']);
      const get = request('GET', readPath, undefined, 'reader-token');
      return compared(
        stage,
        { server: without, request: get },
        { server: await filled(audited ? audit : []), request: get },
        true,
      );
    }),
});

const createEncrypted = (name: string, tls: boolean): Scenario => ({
  name,
  what:
    'POST of a Secret of 1 KB that is encrypted with aesgcm, beside the same without encryption, ' +
    (tls ? 'on servers with default options (TLS)' : 'by plain HTTP'),
  goal: { form: 'times', mark: 1.1 },
  everyAdapter: true,
  run: (stage) => {
    const keys = [{ name: 'key1', secret: randomBytes(32).toString('base64') }];
    const config = JSON.stringify({
      apiVersion: 'apiserver.config.k8s.io/v1',
      kind: 'EncryptionConfiguration',
      resources: [{ resources: ['secrets'], providers: [{ aesgcm: { keys } }] }],
    });
    return withFiles({ config, 'tokens.csv': tokens }, (folder) => {
      const words = ['--encryption-provider-config', join(folder, 'config')];
      const create = request('POST', `${namespacePath}/secrets`, secret, tls ? 'admin-token' : undefined);
      const start = (more: readonly string[]) => (tls ? startDefault(stage, folder, more) : stage.start(more));
      return compared(stage, { server: start([]), request: create }, { server: start(words), request: create }, tls);
    });
  },
});

export const accessScenarios: readonly Scenario[] = [
  getOfDefault('access control', 'by a user with 1,000 roles and 5,000 bindings, responses audited', true),
  getOfDefault('access control: roles', 'by a user with 1,000 roles and 5,000 bindings', false),
  getWith(
    'access control plain',
    'by a user with 1,000 roles and 5,000 bindings, responses audited',
    true,
    'responses',
  ),
  getWith('access control plain: roles', 'by a user with 1,000 roles and 5,000 bindings', true, 'nothing'),
  getWith('access control plain: audit', 'with audit of responses at Metadata', false, 'responses'),
  getWith('access control plain: stages', 'with audit of requests and responses at Metadata', false, 'every stage'),
  createEncrypted('encryption', true),
  createEncrypted('encryption plain', false),
];
