import { envVarNameErrors } from '@keelson/core';
import type { Container, coreV1, Pod, Service } from '@keelson/kinds';
import type { EnvironmentFacts } from '../../base/pod/environment-facts.ts';
import { fieldValue } from '../../base/pod/field-value.ts';
import type { ObjectReader } from '../../base/pod/object-reader.ts';
import { allContainersOf, isStaticPod } from '../../base/pod/pod-spec.ts';
import { resourceValue } from '../../base/pod/resource-value.ts';

/** The pod refers to something that is missing or invalid; the container waits with `CreateContainerConfigError`. */
export class ContainerConfigError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ContainerConfigError';
  }
}

export interface Environment {
  readonly variables: ReadonlyMap<string, string>;
  /** Keys of `envFrom` objects that are not valid variable names, by their object, for an event. */
  readonly skipped: readonly string[];
}

/**
 * The variables of a container and their precedence: see docs/reference/agent-rules.md#environment-of-a-container.
 *
 * @throws ContainerConfigError
 */
export async function containerEnvironment(
  pod: Pod,
  container: Container,
  facts: EnvironmentFacts,
): Promise<Environment> {
  const namespace = pod.metadata?.namespace ?? '';
  const services = await servicesOf(pod, namespace, facts.objects);
  const own = new Map<string, string>();
  const skipped: string[] = [];
  for (const source of container.envFrom ?? []) await addWhole(source, namespace, facts, own, skipped);
  const lookUp = (name: string) => own.get(name) ?? services.get(name);
  for (const variable of container.env ?? []) {
    const value = variable.valueFrom
      ? await sourceValue(variable.valueFrom, pod, container, facts)
      : expand(variable.value ?? '', lookUp);
    if (value !== undefined) own.set(variable.name, value);
  }
  return { variables: new Map([...services, ...own]), skipped };
}

/** The service of the API server, whose variables all pods get, as in kubelet. */
const apiService = { namespace: 'default', name: 'kubernetes' } as const;

/** A static pod starts without service variables when the API server does not answer: it may be that API server. */
async function servicesOf(pod: Pod, namespace: string, objects: ObjectReader): Promise<ReadonlyMap<string, string>> {
  try {
    const ofDefault = await objects.services(apiService.namespace);
    const ofServer = ofDefault.filter(({ metadata }) => metadata?.name === apiService.name);
    if (pod.spec.enableServiceLinks === false) return serviceVariables(ofServer);
    const own = namespace === apiService.namespace ? ofDefault : await objects.services(namespace);
    // A service of the pod's namespace replaces that of the server with the same name.
    return serviceVariables([...ofServer, ...own]);
  } catch (error) {
    if (isStaticPod(pod)) return new Map();
    throw error;
  }
}

async function addWhole(
  source: coreV1.EnvFromSource,
  namespace: string,
  { objects }: EnvironmentFacts,
  into: Map<string, string>,
  skipped: string[],
): Promise<void> {
  const { configMapRef, secretRef, prefix = '' } = source;
  const ref = configMapRef ?? secretRef;
  if (!ref) return;
  const kind = configMapRef ? 'configmap' : 'secret';
  const values = configMapRef
    ? (await objects.configMap(namespace, ref.name ?? ''))?.data
    : await secretTexts(objects, namespace, ref.name ?? '');
  if (values === undefined) {
    const exists = configMapRef ? (await objects.configMap(namespace, ref.name ?? '')) !== undefined : false;
    if (ref.optional === true || exists) return;
    throw new ContainerConfigError(`${kind} "${ref.name}" not found`);
  }
  for (const [key, value] of Object.entries(values)) {
    const name = prefix + key;
    if (envVarNameErrors(name).length > 0) skipped.push(`${kind} ${namespace}/${ref.name}: ${name}`);
    else into.set(name, value);
  }
}

async function secretTexts(
  objects: ObjectReader,
  namespace: string,
  name: string,
): Promise<Record<string, string> | undefined> {
  const secret = await objects.secret(namespace, name);
  if (secret === undefined) return undefined;
  const data: Record<string, string> = secret.data ?? {};
  return Object.fromEntries(
    Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]),
  );
}

async function sourceValue(
  source: coreV1.EnvVarSource,
  pod: Pod,
  container: Container,
  facts: EnvironmentFacts,
): Promise<string | undefined> {
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef } = source;
  const namespace = pod.metadata?.namespace ?? '';
  if (fieldRef) {
    const value = fieldValue(fieldRef.fieldPath, pod, facts.place);
    if (value === undefined) throw new ContainerConfigError(`field path "${fieldRef.fieldPath}" is not supported`);
    return value;
  }
  if (resourceFieldRef) {
    const { containerName, resource, divisor } = resourceFieldRef;
    const subject = containerName ? allContainersOf(pod).find(({ name }) => name === containerName) : container;
    const value = subject && resourceValue(subject, resource, divisor, facts.allocatable);
    if (value === undefined)
      throw new ContainerConfigError(`resource "${resource}" of container "${containerName}" is not supported`);
    return value;
  }
  if (configMapKeyRef) {
    const { name = '', key, optional } = configMapKeyRef;
    const found = await facts.objects.configMap(namespace, name);
    return keyValue(found?.data?.[key], found !== undefined, `configmap "${name}"`, key, optional);
  }
  if (secretKeyRef) {
    const { name = '', key, optional } = secretKeyRef;
    const found = await secretTexts(facts.objects, namespace, name);
    return keyValue(found?.[key], found !== undefined, `secret "${name}"`, key, optional);
  }
  throw new ContainerConfigError('this source of an environment variable is not supported');
}

function keyValue(
  value: string | undefined,
  exists: boolean,
  subject: string,
  key: string,
  optional: boolean | undefined,
): string | undefined {
  if (value !== undefined || optional === true) return value;
  throw new ContainerConfigError(exists ? `couldn't find key ${key} in ${subject}` : `${subject} not found`);
}

const reference = /\$(?:\$|\(([^()]*)\))/g;

/**
 * Replaces `$(NAME)` by the value of the variable. `$$` stands for `$`, so that `$$(NAME)` remains text; a reference to
 * an unknown variable is not replaced. Replaced text is not expanded again.
 */
export function expand(text: string, lookUp: (name: string) => string | undefined): string {
  return text.replace(reference, (match, name: string | undefined) =>
    name === undefined ? '$' : (lookUp(name) ?? match),
  );
}

/**
 * Variables by which containers find the services of their namespace: `<NAME>_SERVICE_HOST`, `..._PORT` and the older
 * forms per port.
 */
export function serviceVariables(services: readonly Service[]): Map<string, string> {
  const variables = new Map<string, string>();
  for (const { metadata, spec } of services) {
    const ip = spec?.clusterIP;
    const [first] = spec?.ports ?? [];
    if (!ip || ip === 'None' || first === undefined) continue;
    const name = variableName(metadata?.name ?? '');
    const host = ip.includes(':') ? `[${ip}]` : ip;
    variables.set(`${name}_SERVICE_HOST`, ip);
    variables.set(`${name}_SERVICE_PORT`, String(first.port));
    for (const port of spec?.ports ?? [])
      if (port.name) variables.set(`${name}_SERVICE_PORT_${variableName(port.name)}`, String(port.port));
    const url = (port: typeof first) => `${(port.protocol ?? 'TCP').toLowerCase()}://${host}:${port.port}`;
    variables.set(`${name}_PORT`, url(first));
    for (const port of spec?.ports ?? []) {
      const prefix = `${name}_PORT_${port.port}_${port.protocol ?? 'TCP'}`;
      variables.set(prefix, url(port));
      variables.set(`${prefix}_PROTO`, (port.protocol ?? 'TCP').toLowerCase());
      variables.set(`${prefix}_PORT`, String(port.port));
      variables.set(`${prefix}_ADDR`, ip);
    }
  }
  return variables;
}

function variableName(name: string): string {
  return name.toUpperCase().replaceAll('-', '_').replaceAll('.', '_');
}
