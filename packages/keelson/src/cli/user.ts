import { join, relative } from 'node:path';
import { type ApiClient, isStatusError, type KindDefinition, type ResourceClient, StatusReason } from '@keelson/core';
import { listOf, requiredText, text, UsageError } from '@keelson/core/internal';
import { silentLogger } from '@keelson/core/runtime';
import { ClusterRole, ClusterRoleBinding, Namespace, Role, RoleBinding } from '@keelson/kinds';
import { readPrivateFile, writePrivateFile } from '../base/private-file.ts';
import { issueCertificate } from '../tls/authority.ts';
import { authorityFile } from '../tls/credentials.ts';
import { userKubeconfig } from '../tls/kubeconfig.ts';
import { type ApiCommand, apiOptions, commandHelp, connect, parseCommand } from './api-command.ts';

const command: ApiCommand = {
  name: 'keelson user add',
  synopsis: `keelson user add NAME [options]

Creates a client certificate for a user, signed by the authority of the data directory, and writes a kubeconfig with it.
With --role it also creates the binding that grants the role. The certificate is valid for a year: remove the bindings
of a user who must lose access, or revoke the certificate with the option --client-crl-file of the server.
`,
  options: [
    {
      name: 'groups',
      flag: '--group',
      type: listOf('GROUP', requiredText),
      default: [],
      help: 'group of the user; repeat for more',
    },
    { name: 'role', flag: '--role', type: text, default: undefined, help: 'cluster role, or role of --namespace' },
    {
      name: 'namespace',
      flag: '--namespace',
      type: text,
      default: undefined,
      help: 'namespace in which the role applies (also -n); without it the role applies everywhere',
    },
    {
      name: 'output',
      flag: '--output',
      type: text,
      default: undefined,
      shownDefault: 'users/NAME.kubeconfig under --data',
      help: 'file of the kubeconfig',
    },
    ...apiOptions,
  ],
};

interface UserOptions {
  readonly groups: readonly string[];
  readonly role?: string;
  readonly namespace?: string;
  readonly output?: string;
  readonly data: string;
}

const group = 'rbac.authorization.k8s.io';
const lifeMs = 365 * 86_400_000;

/** Runs `keelson user`. @throws UsageError */
export async function userCommand(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  print: (text: string) => void,
): Promise<void> {
  const { positional, values, help } = parseCommand(words, env, command);
  if (help) return print(commandHelp(command));
  const [verb, name, ...rest] = positional;
  if (verb !== 'add' || name === undefined || rest.length > 0)
    throw new UsageError('use keelson user add NAME [--group GROUP] [--role ROLE] [--namespace NAMESPACE]');
  checkName(name);
  const options = values as unknown as UserOptions;
  const authority = await readAuthority(options.data);
  const { client, server } = await connect(values);
  try {
    if (server.startsWith('http:'))
      throw new UsageError('the server does not authenticate users (--insecure); start it without --insecure');
    const granted = options.role === undefined ? undefined : await grant(client, name, options.role, options.namespace);
    // Not injected: servers check the validity with the clock of the machine.
    const now = Date.now();
    const pair = await issueCertificate(
      authority,
      { commonName: name, organizations: options.groups, usage: 'client', lifeMs },
      now,
    );
    const path = options.output ?? join(options.data, 'users', `${name}.kubeconfig`);
    const { namespace } = options;
    await writePrivateFile(
      path,
      userKubeconfig({
        url: server,
        authority: authority.certificate,
        ...{ name, pair },
        ...(namespace === undefined ? {} : { namespace }),
      }),
    );
    print(report(name, options, granted, relative('', path) || path, new Date(now + lifeMs)));
  } finally {
    client.close();
  }
}

/** @throws UsageError */
function checkName(name: string): void {
  if (/^[A-Za-z0-9][A-Za-z0-9@._-]{0,127}$/.test(name)) return;
  throw new UsageError(
    `${JSON.stringify(name)} cannot be a user name: use at most 128 of the characters a-z, A-Z, 0-9, "@", ".", "_", ` +
      '"-", and begin with a letter or digit',
  );
}

/** @throws UsageError when the directory has no authority */
async function readAuthority(data: string) {
  const [certificate, key] = await Promise.all(
    [authorityFile, 'ca.key'].map((file) => readPrivateFile(join(data, file), silentLogger)),
  );
  if (certificate === undefined || key === undefined)
    throw new UsageError(`--data ${data} contains no certificate authority; start keelson serve or up with it first`);
  return { certificate, key };
}

async function find<T extends object>(reading: Promise<T>): Promise<T | undefined> {
  return reading.catch((error: unknown) => {
    if (!isStatusError(error, StatusReason.NotFound)) throw error;
    return undefined;
  });
}

/** Creates the binding of a role to a user; returns its description. @throws UsageError */
async function grant(client: ApiClient, user: string, role: string, namespace: string | undefined): Promise<string> {
  const kind = await kindOfRole(client, role, namespace);
  if (namespace !== undefined && (await find(client.resource(Namespace).get(namespace))) === undefined)
    throw new UsageError(`the namespace ${namespace} does not exist; run kubectl create namespace ${namespace} first`);
  const bindingKind = namespace === undefined ? ClusterRoleBinding : RoleBinding;
  const name = `${user}-${role}`.toLowerCase();
  const binding: RoleBinding = {
    apiVersion: bindingKind.apiVersion,
    kind: bindingKind.kind,
    metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
    subjects: [{ kind: 'User', apiGroup: group, name: user }],
    roleRef: { apiGroup: group, kind, name: role },
  };
  const all = client.resource<RoleBinding>(bindingKind as KindDefinition<RoleBinding>);
  await bind(namespace === undefined ? all : all.namespace(namespace), binding);
  return `${bindingKind.kind} ${name}${namespace === undefined ? '' : ` in ${namespace}`} grants ${kind} ${role}`;
}

/** @throws UsageError when there is no such role */
async function kindOfRole(client: ApiClient, role: string, namespace: string | undefined): Promise<string> {
  if ((await find(client.resource(ClusterRole).get(role))) !== undefined) return ClusterRole.kind;
  if (namespace === undefined) throw new UsageError(`--role ${role}: there is no cluster role of this name`);
  if ((await find(client.resource(Role).namespace(namespace).get(role))) !== undefined) return Role.kind;
  throw new UsageError(`--role ${role}: there is no cluster role, and no role in ${namespace}, of this name`);
}

/** Creates a binding, or adds its subject to the existing binding of the same role. @throws UsageError */
async function bind(bindings: ResourceClient<RoleBinding>, binding: RoleBinding): Promise<void> {
  const name = binding.metadata?.name ?? '';
  const existing = await find(bindings.get(name));
  if (existing === undefined) {
    await bindings.create(binding);
    return;
  }
  if (existing.roleRef.kind !== binding.roleRef.kind || existing.roleRef.name !== binding.roleRef.name)
    throw new UsageError(`the binding ${name} already exists and grants ${existing.roleRef.name}; delete it first`);
  const [subject] = binding.subjects ?? [];
  const subjects = existing.subjects ?? [];
  if (subject === undefined || subjects.some(({ kind, name: other }) => kind === 'User' && other === subject.name))
    return;
  await bindings.update({ ...existing, subjects: [...subjects, subject] });
}

function report(
  user: string,
  { role, namespace }: UserOptions,
  granted: string | undefined,
  path: string,
  until: Date,
): string {
  const scope = namespace === undefined ? '' : ` -n ${namespace}`;
  const lines = [
    ...(granted === undefined ? [] : [granted]),
    `${path} contains the certificate of ${user}, valid until ${until.toISOString().slice(0, 10)}`,
    '',
    'Next:',
    ...(role === undefined
      ? [`  kubectl create rolebinding ${user}-view --clusterrole=view --user=${user} -n default`]
      : []),
    `  kubectl --kubeconfig=${path} auth can-i --list${scope}`,
    `  keelson can-i --as ${user} list pods${scope} --why`,
  ];
  return `${lines.join('\n')}\n`;
}
