import { readFile, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildGoTool } from '@keelson/test-support';
import { eventually } from '@keelson/testing';
import test from 'ava';
import { removeDirectory, startKeelson, temporaryDirectory } from '../../src/keelson-process.ts';
import { findKubectl, Kubectl } from '../../src/kubectl.ts';
import { runShells, startNodeOfUp } from '../../src/node-of-up.ts';

const command = process.platform === 'linux' ? findKubectl() : undefined;
const goProgram = buildGoTool('in-cluster');
if (goProgram === undefined && process.env['CI']) throw new Error('no in-cluster client: install Go to build it');
/** The claims of a token. */
const claimsOf = (
  token: string,
): { sub: string; jti: string; aud: string[]; exp: number; iat: number; 'kubernetes.io': { pod?: { name: string } } } =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
// Only root can mount the token at its path.
const whereMounted = (command !== undefined && process.getuid?.() === 0) || process.env['CI'] ? test : test.skip;

const javaScript = `${process.execPath} ${fileURLToPath(new URL('../../src/in-cluster-client.js', import.meta.url))}`;
const user = 'system:serviceaccount:default:reader';
const waitMs = 60_000;

whereMounted(
  'clients in a pod use its service account with the permissions of a role, across renewals, until the pod is deleted',
  async (t) => {
    t.timeout(240_000);
    const node = await startNodeOfUp(command ?? '');
    t.teardown(() => node.stop());
    const { kubectl, folder, server } = node;
    await kubectl.run(['create', 'serviceaccount', 'reader']);
    const go = `${folder}/go`;
    // Each client asks repeatedly, and its last complete output is in the file of its name.
    const clients = {
      node: `exec ${javaScript} ${folder}/node ${folder}/token`,
      ...(goProgram && { go: `while :; do ${goProgram} > ${go}.new 2>&1; mv ${go}.new ${go}; sleep 0.2; done` }),
    };
    const shells = Object.entries(clients).map(([name, script]) => ({ name, script }));
    await runShells(kubectl, 'p', shells, { serviceAccountName: 'reader' });
    const shown = (name: string, second: RegExp) =>
      eventually(async () => {
        const lines = (await readFile(join(folder, name), 'utf8').catch(() => '')).trimEnd().split('\n');
        return lines.length === 2 && second.test(lines[1] ?? '') && lines;
      }, waitMs);
    for (const name of Object.keys(clients)) {
      const [name1] = await shown(name, new RegExp(`User "${user}" cannot list resource "configmaps"`));
      t.is(name1, user, name);
    }
    await kubectl.run(['create', 'role', 'reader', '--verb=list', '--resource=configmaps']);
    await kubectl.run(['create', 'rolebinding', 'reader', '--role=reader', '--serviceaccount=default:reader']);
    for (const name of Object.keys(clients)) t.is((await shown(name, /kube-root-ca/))[1], 'kube-root-ca.crt', name);
    await kubectl.run(['delete', 'rolebinding', 'reader']);
    for (const name of Object.keys(clients)) await shown(name, /cannot list resource/);
    await kubectl.run(['create', 'rolebinding', 'reader', '--role=reader', '--serviceaccount=default:reader']);

    const readToken = () => readFile(join(folder, 'token'), 'utf8');
    const first = await readToken();
    await server.stop();
    const again = await startKeelson(server.data, ['--log-level', 'warn', '--listen', new URL(server.url).host], 'up');
    t.teardown(async () => {
      await kubectl.try(['delete', 'pods', '--all', '--now', '--timeout=50s']);
      await again.stop();
    });
    // The agent has no token of the previous agent.
    const token = await eventually(async () => {
      const current = await readToken();
      return claimsOf(current).jti !== claimsOf(first).jti && current;
    }, waitMs);
    t.is(claimsOf(token).sub, claimsOf(first).sub, 'the running pod has another token');
    for (const name of Object.keys(clients)) {
      await rm(join(folder, name), { force: true });
      await shown(name, /kube-root-ca/);
    }

    t.is(claimsOf(token)['kubernetes.io'].pod?.name, 'p');
    const authority = await readFile(join(server.data, 'ca.crt'), 'utf8');
    const listCode = () =>
      new Promise<number>((resolve, reject) => {
        const headers = { authorization: `Bearer ${token}` };
        const url = `${server.url}/api/v1/namespaces/default/configmaps`;
        const outgoing = request(url, { agent: false, ca: authority, headers }, (incoming) => {
          incoming.resume().on('end', () => resolve(incoming.statusCode ?? 0));
        });
        outgoing.on('error', reject).end();
      });
    t.is(await eventually(async () => (await listCode()) === 200 && 200, waitMs), 200);
    await kubectl.run(['delete', 'pod', 'p', '--now', '--timeout=50s']);
    t.is(await listCode(), 401, 'the token has ended with its pod');
  },
);

const withKubectl = command === undefined ? test.skip : test;

withKubectl('kubectl create token issues a token for an account, bound to an object on request', async (t) => {
  t.timeout(120_000);
  const folder = await temporaryDirectory();
  t.teardown(() => removeDirectory(folder));
  const options = ['--service-account-max-token-expiration', '2h', '--log-level', 'debug'];
  const server = await startKeelson(join(folder, 'data'), options);
  t.teardown(() => server.stop());
  const kubectl = new Kubectl(command ?? '', server.kubeconfig, folder);
  // A controller creates the account.
  await kubectl.run(['wait', '--for=create', 'serviceaccount/default', '--timeout=60s']);
  const token = await kubectl.run(['create', 'token', 'default', '--audience=vault', '--duration=30m']);
  const claims = claimsOf(token);
  t.deepEqual(claims.aud, ['vault']);
  t.is(claims.exp - claims.iat, 1800);
  const long = await kubectl.try(['create', 'token', 'default', '--duration=24h']);
  t.is(long.stderr.trim(), 'Warning: requested expiration of 86400 seconds shortened to 7200 seconds');
  await kubectl.run(['create', 'secret', 'generic', 's']);
  const bound = (
    await kubectl.run(['create', 'token', 'default', '--bound-object-kind=Secret', '--bound-object-name=s'])
  ).trim();
  const kubeconfig = JSON.parse(await readFile(server.kubeconfig, 'utf8')) as { users: unknown[] };
  const config = join(folder, 'config');
  await writeFile(config, JSON.stringify({ ...kubeconfig, users: [{ name: 'admin', user: { token: bound } }] }));
  const whoami = () =>
    kubectl.try(['--kubeconfig', config, 'auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}']);
  t.is((await whoami()).stdout, 'system:serviceaccount:default:default');
  await kubectl.run(['delete', 'secret', 's']);
  t.regex((await whoami()).stderr, /Unauthorized|You must be logged in/);
  const { stdout, stderr } = server.output();
  for (const secret of [token, bound])
    t.false((stdout + stderr).includes(secret.trim().split('.')[2] ?? ''), 'no log contains tokens');
});
