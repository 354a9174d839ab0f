import { readFile } from 'node:fs/promises';
import { eventually } from '@keelson/testing';
import { kubectlTest, namespaceFor } from '../../src/kubectl-cluster.ts';

const test = kubectlTest();

const page = new URL('../../../../docs/how-to/write-admission-policies.md', import.meta.url);

test('the policy of the how-to page denies, warns, and is listed', async (t) => {
  const { kubectl } = t.context;
  const namespace = await namespaceFor(kubectl, 'admission policies');
  const manifest = /```yaml\n(# policy\.yaml\n[\s\S]*?)```/.exec(await readFile(page, 'utf8'))?.[1] ?? '';
  const applied = await kubectl.run(['apply', '-f', '-'], { input: manifest });
  t.is(
    applied,
    'validatingadmissionpolicy.admissionregistration.k8s.io/replicas.example.com created\n' +
      'validatingadmissionpolicybinding.admissionregistration.k8s.io/replicas created\n',
  );
  const create = (name: string, replicas: number) =>
    kubectl.try(['create', 'deployment', name, '--image=nginx', `--replicas=${replicas}`, '-n', namespace]);
  /** A policy takes effect within a second; a busy machine may need longer. */
  const until = (name: string, replicas: number, done: (stderr: string) => boolean) =>
    eventually(async () => {
      const result = await create(name, replicas);
      if (done(result.stderr)) return result;
      await kubectl.try(['delete', 'deployment', name, '-n', namespace]);
      throw new Error(`unexpected: ${result.stderr}`);
    }, 60_000);
  const why = "ValidatingAdmissionPolicy 'replicas.example.com' with binding 'replicas'";
  const denied = await until('web', 6, (stderr) => stderr !== '');
  t.is(
    denied.stderr,
    'error: failed to create deployment: deployments.apps "web" is forbidden: ' +
      `${why} denied request: at most 5 replicas, not 6\n`,
  );
  t.is(denied.code, 1);
  t.is((await create('web', 5)).code, 0);

  const rows = await kubectl.run(['get', 'validatingadmissionpolicies,validatingadmissionpolicybindings']);
  t.regex(rows, /^validatingadmissionpolicy\.\S+\/replicas\.example\.com +1 +<unset> /m);
  t.regex(rows, /^validatingadmissionpolicybinding\.\S+\/replicas +replicas\.example\.com +<unset> /m);

  const actions = '{"spec":{"validationActions":["Warn","Audit"]}}';
  await kubectl.run(['patch', 'validatingadmissionpolicybinding', 'replicas', '--type=merge', '-p', actions]);
  const warned = await until('large', 7, (stderr) => stderr.startsWith('Warning'));
  t.is(warned.stderr, `Warning: Validation failed for ${why}: at most 5 replicas, not 7\n`);
  t.is(warned.code, 0);
  await kubectl.run(['delete', 'validatingadmissionpolicybinding', 'replicas']);
});

test('a policy with errors in an expression is rejected with the position of the error', async (t) => {
  const rules = [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }];
  const policy = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: 'wrong' },
    spec: { matchConstraints: { resourceRules: rules }, validations: [{ expression: 'object.spec.replicas <= five' }] },
  };
  const { code, stderr } = await t.context.kubectl.try(['create', '-f', '-'], { input: JSON.stringify(policy) });
  t.is(code, 1);
  t.is(
    stderr,
    'The ValidatingAdmissionPolicy "wrong" is invalid: spec.validations[0].expression: Invalid value: ' +
      '"object.spec.replicas <= five": compilation failed: ERROR: <input>:1:25: undeclared reference to ' +
      "'five' (in container '')\n | object.spec.replicas <= five\n | ........................^\n",
  );
});
