import { allowingRule } from '@keelson/access';
import type { AccessAttributes, ApiClient } from '@keelson/core';
import { bool, listOf, requiredText, text, UsageError } from '@keelson/core/internal';
import {
  ClusterRole,
  type PolicyRule,
  Role,
  SelfSubjectAccessReview,
  SelfSubjectReview,
  SubjectAccessReview,
} from '@keelson/kinds';
import { type ApiCommand, apiOptions, commandHelp, connect, parseCommand } from './api-command.ts';

const command: ApiCommand = {
  name: 'keelson can-i',
  synopsis: `keelson can-i [--as USER] VERB RESOURCE[/NAME] [options]
keelson can-i [--as USER] VERB /PATH [options]

Prints yes or no, with exit code 0 or 1. With --why it names the rule that allows the request, or the smallest rule that
would.
`,
  options: [
    { name: 'as', flag: '--as', type: text, default: undefined, help: 'user; default: the user of the kubeconfig' },
    {
      name: 'groups',
      flag: '--as-group',
      type: listOf('GROUP', requiredText),
      default: [],
      help: 'group of the user; repeat for more. A certificate contains the groups of keelson user add --group',
    },
    {
      name: 'namespace',
      flag: '--namespace',
      type: text,
      default: undefined,
      shownDefault: 'default',
      help: 'namespace of the request (also -n)',
    },
    {
      name: 'allNamespaces',
      flag: '--all-namespaces',
      type: bool,
      default: false,
      help: 'the request is for all namespaces',
    },
    { name: 'subresource', flag: '--subresource', type: text, default: '', help: 'subresource, for example log' },
    { name: 'why', flag: '--why', type: bool, default: false, help: 'print the reason' },
    ...apiOptions,
  ],
};

interface CanIOptions {
  readonly as?: string;
  readonly groups: readonly string[];
  readonly namespace?: string;
  readonly allNamespaces: boolean;
  readonly subresource: string;
  readonly why: boolean;
}

interface Answer {
  readonly allowed: boolean;
  readonly reason?: string;
}

/** Runs `keelson can-i`; true when the request is allowed. @throws UsageError */
export async function canICommand(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  print: (text: string) => void,
  warn: (text: string) => void,
): Promise<boolean> {
  const { positional, values, help } = parseCommand(words, env, command);
  if (help) {
    print(commandHelp(command));
    return true;
  }
  const [verb, target, ...rest] = positional;
  if (verb === undefined || target === undefined || rest.length > 0)
    throw new UsageError('use keelson can-i [--as USER] VERB RESOURCE[/NAME] [-n NAMESPACE] [--why]');
  const options = values as unknown as CanIOptions;
  if (options.as === undefined && options.groups.length > 0) throw new UsageError('--as-group requires --as');
  const { client, namespace: home } = await connect(values);
  try {
    const attributes = await attributesOf(client, verb, target, options, home, warn);
    const answer = await ask(client, attributes, options);
    print(answer.allowed ? 'yes\n' : 'no\n');
    if (options.why) print(await explain(client, attributes, answer, options));
    return answer.allowed;
  } finally {
    client.close();
  }
}

async function attributesOf(
  client: ApiClient,
  verb: string,
  target: string,
  { namespace: given, allNamespaces, subresource }: CanIOptions,
  home: string | undefined,
  warn: (text: string) => void,
): Promise<AccessAttributes> {
  const none = { apiGroup: '', apiVersion: '', namespace: '', resource: '', subresource: '', name: '', path: '' };
  if (target.startsWith('/')) {
    if (subresource !== '') throw new UsageError('--subresource is only for resources, not for paths');
    return { ...none, verb, isResourceRequest: false, path: target };
  }
  const slash = target.indexOf('/');
  const written = slash < 0 ? target : target.slice(0, slash);
  const name = slash < 0 ? '' : target.slice(slash + 1);
  const dot = written.indexOf('.');
  const [plural, group] = dot < 0 ? [written, undefined] : [written.slice(0, dot), written.slice(dot + 1)];
  const found = (await client.discover()).find(
    (row) =>
      (row.resource === plural || row.kind.toLowerCase() === plural.toLowerCase()) &&
      (group === undefined || row.group === group),
  );
  if (found === undefined && plural !== '*') warn(`the server has no resource ${written}\n`);
  const namespaced = found?.namespaced ?? true;
  const namespace = allNamespaces || !namespaced ? '' : (given ?? home ?? 'default');
  return {
    ...{ ...none, verb, isResourceRequest: true, namespace, subresource, name },
    resource: found?.resource ?? plural,
    apiGroup: found?.group ?? group ?? '',
    apiVersion: found?.version ?? '',
  };
}

/** The groups of a user: the given ones, and those that follow from the name of the user. */
function groupsOf(user: string, groups: readonly string[]): string[] {
  const namespace = /^system:serviceaccount:([^:]+):[^:]+$/.exec(user)?.[1];
  const own = namespace === undefined ? [] : ['system:serviceaccounts', `system:serviceaccounts:${namespace}`];
  const anonymous = user === 'system:anonymous' ? 'system:unauthenticated' : 'system:authenticated';
  return [...new Set([...groups, ...own, anonymous])];
}

async function ask(client: ApiClient, attributes: AccessAttributes, { as, groups }: CanIOptions): Promise<Answer> {
  const { verb, isResourceRequest, path, apiGroup, apiVersion, namespace, resource, subresource, name } = attributes;
  const question = isResourceRequest
    ? {
        resourceAttributes: {
          ...{ verb, namespace, resource, subresource, name },
          ...{ group: apiGroup, version: apiVersion },
        },
      }
    : { nonResourceAttributes: { verb, path } };
  const apiVersionOfReview = SubjectAccessReview.apiVersion;
  const review =
    as === undefined
      ? await client.resource(SelfSubjectAccessReview).create({
          apiVersion: apiVersionOfReview,
          kind: SelfSubjectAccessReview.kind,
          spec: question,
        })
      : await client.resource(SubjectAccessReview).create({
          apiVersion: apiVersionOfReview,
          kind: SubjectAccessReview.kind,
          spec: { ...question, user: as, groups: groupsOf(as, groups) },
        });
  return review.status ?? { allowed: false };
}

const quoted = '"((?:[^"\\\\]|\\\\.)*)"';
const rbacReason = new RegExp(`^RBAC: allowed by (\\w+) ${quoted} of (\\w+) ${quoted} to (\\w+) ${quoted}$`);

async function explain(
  client: ApiClient,
  attributes: AccessAttributes,
  { allowed, reason = '' }: Answer,
  options: CanIOptions,
): Promise<string> {
  const user = options.as ?? (await ownName(client));
  if (!allowed) return `${reason === '' ? '' : `${reason}\n`}${adviceFor(attributes, user)}`;
  const [, bindingKind, binding = '', roleKind, role = '', subjectKind, subject] = rbacReason.exec(reason) ?? [];
  if (bindingKind === undefined)
    return reason === ''
      ? `${user} is a member of system:masters, or an authorizer that gives no reason allows the request\n`
      : `${reason}\n`;
  // The authorizer RBAC writes a RoleBinding as NAME/NAMESPACE.
  const slash = bindingKind === 'RoleBinding' ? binding.lastIndexOf('/') : binding.length;
  const namespace = binding.slice(slash + 1);
  const found = await (roleKind === 'Role'
    ? client.resource(Role).namespace(namespace).get(role)
    : client.resource(ClusterRole).get(role));
  const rule = allowingRule(found.rules ?? [], attributes);
  const place = bindingKind === 'RoleBinding' ? ` in ${namespace}` : '';
  return [
    `${bindingKind} ${binding.slice(0, slash)}${place} grants ${roleKind} ${role} to ${subjectKind} ${subject}`,
    rule === undefined ? 'the role has changed in the meantime' : `rule: ${JSON.stringify(rule)}`,
    '',
  ].join('\n');
}

async function ownName(client: ApiClient): Promise<string> {
  const { status } = await client
    .resource(SelfSubjectReview)
    .create({ apiVersion: SelfSubjectReview.apiVersion, kind: SelfSubjectReview.kind });
  return status?.userInfo?.username ?? '';
}

/** The smallest rule that would allow a request, and the commands that create it. */
function adviceFor(attributes: AccessAttributes, user: string): string {
  const { verb, isResourceRequest, apiGroup, resource, subresource, namespace, name, path } = attributes;
  const full = subresource === '' ? resource : `${resource}/${subresource}`;
  const rule: PolicyRule = isResourceRequest
    ? {
        ...{ verbs: [verb], apiGroups: [apiGroup], resources: [full] },
        ...(name === '' ? {} : { resourceNames: [name] }),
      }
    : { verbs: [verb], nonResourceURLs: [path] };
  const kind = namespace === '' ? 'clusterrole' : 'role';
  const role = `${verb}-${isResourceRequest ? full.replace('/', '-') : 'path'}`.toLowerCase();
  const typed = `${resource}${apiGroup === '' ? '' : `.${apiGroup}`}${subresource === '' ? '' : `/${subresource}`}`;
  const what = isResourceRequest
    ? `--resource=${typed}${name === '' ? '' : ` --resource-name=${name}`}`
    : `--non-resource-url=${path}`;
  const place = namespace === '' ? '' : ` -n ${namespace}`;
  const account = /^system:serviceaccount:([^:]+:[^:]+)$/.exec(user)?.[1];
  const subject = account === undefined ? `--user=${user}` : `--serviceaccount=${account}`;
  return [
    `no rule allows it; the smallest rule that would: ${JSON.stringify(rule)}`,
    `  kubectl create ${kind} ${role} --verb=${verb} ${what}${place}`,
    `  kubectl create ${kind}binding ${user.replaceAll(':', '-')}-${role} --${kind}=${role} ${subject}${place}`,
    '',
  ].join('\n');
}
