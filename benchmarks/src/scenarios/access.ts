import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { httpRequest } from '../fixtures.ts';
import type { Spawned } from '../measure/spawned.ts';
import { requestRounds } from './request-rounds.ts';
import type { Scenario, Stage } from './scenario.ts';

const clients = 64;
const server = fileURLToPath(new URL('../access-server.js', import.meta.url));
const namespacePath = '/api/v1/namespaces/default';
const getOne = httpRequest('GET', `${namespacePath}/configmaps/read`, undefined, { 'User-Agent': 'bench/1' });
const secret = { metadata: { name: 'made-{n}' }, data: { value: randomBytes(750).toString('base64') } };
const createSecret = httpRequest('POST', `${namespacePath}/secrets`, JSON.stringify(secret));

/** A file with a document, in a folder of its own that exists while `run` runs. */
async function withFile<T>(document: unknown, run: (path: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-bench-access-'));
  try {
    const path = join(folder, 'config.yml');
    await writeFile(path, JSON.stringify(document), { mode: 0o600 });
    return await run(path);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Alternating slices of a request on a server without and one with what is measured. */
async function compared(stage: Stage, request: string, without: Promise<Spawned>, subject: Promise<Spawned>) {
  const job = { connections: clients, durationMs: stage.sliceMs, requests: [request] };
  const servers = await Promise.all([without, subject]);
  try {
    return await requestRounds(stage, [servers[0], job], [servers[1], job]);
  } finally {
    await Promise.all(servers.map((each) => each.stop()));
  }
}

/** With the stage that docs/how-to/audit.md omits, or with every stage: two events for each request. */
const policyWith = (everyStage: boolean) => ({
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  rules: [{ level: 'Metadata' }],
  omitStages: everyStage ? [] : ['RequestReceived'],
});

type Audited = 'nothing' | 'responses' | 'every stage';

/** Of 10,000 objects as many as 1,000 roles and 5,000 bindings. */
const getWith = (name: string, what: string, withRoles: boolean, audited: Audited): Scenario => ({
  name,
  what: `GET of an object ${what}, beside the same GET of an administrator without roles and audit`,
  goal: { form: 'times', mark: 1.06 },
  everyAdapter: false,
  run: (stage) =>
    withFile(policyWith(audited === 'every stage'), (path) => {
      const counts = withRoles ? [Math.ceil(stage.objects / 10), Math.ceil(stage.objects / 2)] : [0, 0];
      const words = [
        server,
        ...counts.map(String),
        ...(audited === 'nothing' ? [] : [path, join(path, '..', 'audit.log')]),
      ];
      const start = (args: readonly string[]) => stage.startProgram(process.execPath, args);
      return compared(stage, getOne, start([server]), start(words));
    }),
});

export const accessScenarios: readonly Scenario[] = [
  getWith('access control', 'by a user with 1,000 roles and 5,000 bindings, responses audited', true, 'responses'),
  getWith('access control: roles', 'by a user with 1,000 roles and 5,000 bindings', true, 'nothing'),
  getWith('access control: audit', 'with audit of responses at Metadata', false, 'responses'),
  getWith('access control: stages', 'with audit of requests and responses at Metadata', false, 'every stage'),
  {
    name: 'encryption',
    what: 'POST of a Secret of 1 KB that is encrypted with aesgcm, beside the same without encryption',
    goal: { form: 'times', mark: 1.1 },
    everyAdapter: true,
    run: (stage) => {
      const keys = [{ name: 'key1', secret: randomBytes(32).toString('base64') }];
      const config = {
        apiVersion: 'apiserver.config.k8s.io/v1',
        kind: 'EncryptionConfiguration',
        resources: [{ resources: ['secrets'], providers: [{ aesgcm: { keys } }] }],
      };
      return withFile(config, (path) =>
        compared(stage, createSecret, stage.start([]), stage.start(['--encryption-provider-config', path])),
      );
    },
  },
];
