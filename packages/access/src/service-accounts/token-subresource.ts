import { randomUUID } from 'node:crypto';
import {
  fieldError,
  formatTime,
  type KindDefinition,
  type SubresourceCall,
  type SubresourceDefinition,
  statusErrors,
} from '@keelson/core';
import { Node, Pod, Secret, type ServiceAccount, type TokenRequest, TokenRequestSchema } from '@keelson/kinds';
import type { ExistingObjects, ObjectIdentity } from './existing-objects.ts';
import type { SigningKey } from './signing-keys.ts';
import { accountUserName, type KubernetesClaims } from './token-claims.ts';

export interface TokenIssuerOptions {
  readonly key: SigningKey;
  readonly issuer: string;
  /** Audiences of tokens whose request names none: the API server. */
  readonly audiences: readonly string[];
  /** Greatest validity of a token. Longer requested validities are shortened. */
  readonly maxExpirationSeconds?: number;
  /** Issue the tokens that pods get by default for a year, for clients that do not read a renewed token. */
  readonly extendExpiration: boolean;
  readonly objects: ExistingObjects;
}

const bodyKind = { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' } as const;
const leastSeconds = 600;
const mostSeconds = 2 ** 32;
const defaultSeconds = 3600;
/** The validity that the admission plugin ServiceAccount requests; it identifies tokens that may be extended. */
export const podTokenSeconds = 3607;
const extendedSeconds = 365 * 24 * 3600;

type Call = SubresourceCall<ServiceAccount, TokenRequest>;
type Bound = Pick<KubernetesClaims, 'pod' | 'secret' | 'node'>;

/**
 * The subresource `token` of service accounts, which issues tokens: see docs/how-to/use-service-accounts.md#tokens. The
 * messages are those of kube-apiserver.
 */
export function tokenSubresource(options: TokenIssuerOptions): SubresourceDefinition {
  return {
    type: 'action',
    name: 'token',
    bodyKind,
    schema: TokenRequestSchema,
    run: async (call: Call) => ({ code: 201, object: await issueToken(call, options) }),
  };
}

async function issueToken({ parent, body, context, now }: Call, options: TokenIssuerOptions): Promise<TokenRequest> {
  const { name, namespace = '' } = parent;
  const { metadata = {}, spec } = body;
  const foreign = (field: string, value: string) =>
    statusErrors.invalid(bodyKind, name, [
      fieldError.invalid(`metadata.${field}`, value, `must match the service account ${field} if specified`),
    ]);
  if (metadata.name && metadata.name !== name) throw foreign('name', metadata.name);
  if (metadata.namespace && metadata.namespace !== namespace) throw foreign('namespace', metadata.namespace);
  const { uid = '' } = (await parent.get()).metadata ?? {};
  if (metadata.uid && metadata.uid !== uid) {
    const why = `the UID in the token request (${metadata.uid}) does not match the UID of the service account (${uid})`;
    throw conflict(bodyKind, name, why);
  }
  const requested = requestedSeconds(spec.expirationSeconds);
  const bound = await boundObjects(body, namespace, name, options.objects);
  const { maxExpirationSeconds: most = Number.POSITIVE_INFINITY } = options;
  const seconds = Math.min(requested, most);
  if (seconds < requested) context.warn(`requested expiration of ${requested} seconds shortened to ${seconds} seconds`);
  const audiences = spec.audiences?.length ? spec.audiences : options.audiences;
  const extended =
    options.extendExpiration &&
    bound.pod !== undefined &&
    seconds === podTokenSeconds &&
    audiences.some((audience) => options.audiences.includes(audience));
  const nowSeconds = Math.floor(now.getTime() / 1000);
  // Loaded on demand: a server that issues no token does not load it.
  const { SignJWT } = await import('jose');
  const token = await new SignJWT({
    aud: [...audiences],
    'kubernetes.io': {
      namespace,
      ...bound,
      serviceaccount: { name, uid },
      ...(extended ? { warnafter: nowSeconds + seconds } : {}),
    } satisfies KubernetesClaims,
  })
    .setProtectedHeader({ alg: options.key.algorithm, kid: options.key.id })
    .setIssuer(options.issuer)
    .setSubject(accountUserName(namespace, name))
    .setIssuedAt(nowSeconds)
    .setNotBefore(nowSeconds)
    .setExpirationTime(nowSeconds + (extended ? extendedSeconds : seconds))
    .setJti(randomUUID())
    .sign(options.key.privateKey);
  return {
    ...body,
    metadata: { ...metadata, name, namespace, uid, creationTimestamp: formatTime(now) },
    spec: { ...spec, audiences: [...audiences], expirationSeconds: seconds },
    status: { token, expirationTimestamp: formatTime(new Date((nowSeconds + seconds) * 1000)) },
  };
}

function conflict({ group, kind }: { readonly group: string; readonly kind: string }, name: string, why: string) {
  return statusErrors.conflict({ group, resource: kind }, name, why);
}

function requestedSeconds(wanted: number | bigint | null | undefined): number {
  const seconds = Number(wanted ?? defaultSeconds);
  const why =
    seconds < leastSeconds
      ? 'may not specify a duration less than 10 minutes'
      : seconds > mostSeconds
        ? 'may not specify a duration larger than 2^32 seconds'
        : undefined;
  if (why === undefined) return seconds;
  throw statusErrors.invalid(bodyKind, '', [fieldError.invalid('spec.expirationSeconds', seconds, why)]);
}

/** The objects to which the token is bound. @throws StatusError 400, 404, 409 */
async function boundObjects(
  { spec }: TokenRequest,
  namespace: string,
  account: string,
  objects: ExistingObjects,
): Promise<Bound> {
  const wanted = spec.boundObjectRef;
  if (!wanted) return {};
  const { apiVersion = '', kind = '', name = '' } = wanted;
  const read = async <T extends Pod | Secret | Node>(definition: KindDefinition<T>) => {
    const found = await objects.read(definition, definition.scope === 'Namespaced' ? namespace : undefined, name);
    if (found === undefined) throw statusErrors.notFound({ group: '', resource: definition.names.plural }, name);
    const { uid = '' } = found.metadata ?? {};
    if (wanted.uid && wanted.uid !== uid) {
      const why =
        `the UID in the bound object reference (${wanted.uid}) does not match the UID in record. ` +
        'The object might have been deleted and then recreated';
      throw conflict(definition, name, why);
    }
    return { object: found, identity: { name, uid } satisfies ObjectIdentity };
  };
  // As in kube-apiserver only the group counts; every version of these objects has the same name and UID.
  if (!apiVersion.includes('/')) {
    if (kind === 'Secret') return { secret: (await read(Secret)).identity };
    if (kind === 'Node') return { node: (await read(Node)).identity };
    if (kind === 'Pod') {
      const { object, identity } = await read(Pod);
      if (object.spec.serviceAccountName !== account) {
        throw statusErrors.badRequest(
          `cannot bind token for serviceaccount ${JSON.stringify(account)} to pod running with different serviceaccount name.`,
        );
      }
      return { pod: identity, ...(await nodeOf(object, objects)) };
    }
  }
  const [group = '', version = ''] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion];
  throw statusErrors.badRequest(`cannot bind token to object of type ${group}/${version}, Kind=${kind}`);
}

/** The node of a pod, as information for clients. */
async function nodeOf({ spec: { nodeName } }: Pod, objects: ExistingObjects): Promise<Pick<Bound, 'node'>> {
  if (!nodeName) return {};
  const node =
    (await objects.read(Node, undefined, nodeName, 'any')) ?? (await objects.read(Node, undefined, nodeName));
  const uid = node?.metadata?.uid;
  return { node: { name: nodeName, ...(uid === undefined ? {} : { uid }) } };
}
