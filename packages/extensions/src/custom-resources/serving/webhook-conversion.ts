import { randomUUID } from 'node:crypto';
import { Agent } from 'node:https';
import { requestJson } from '@keelson/client';
import { type KindDefinition, type KubeObject, statusErrors } from '@keelson/core';
import { equalJson, isJsonObject } from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';
import type { CustomResourceDefinition } from '@keelson/kinds';
import { failureOf, resolvedFor, webhookHeaders } from '../../services/call-failure.ts';
import type { ResolveService } from '../../services/resolve-service.ts';

type Json = Readonly<Record<string, unknown>>;
type ClientConfig = NonNullable<
  NonNullable<NonNullable<CustomResourceDefinition['spec']['conversion']>['webhook']>['clientConfig']
>;

/** Timeout of a conversion webhook, as in kube-apiserver. */
const timeoutMs = 30_000;
/** Maximum ratio of the size of a response to the size of the request. */
const growth = 4;
const leastAnswerBytes = 1024 * 1024;

/** Converts objects by the webhook of a definition. */
export class WebhookConversion {
  readonly #config: ClientConfig;
  readonly #reviewVersion: string;
  readonly #name: string;
  readonly #clock: Clock;
  readonly #addresses: ResolveService;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 16, timeout: 60_000 });

  constructor(
    definition: CustomResourceDefinition,
    options: { readonly clock: Clock; readonly addresses: ResolveService },
  ) {
    const { webhook } = definition.spec.conversion ?? {};
    this.#config = webhook?.clientConfig ?? {};
    this.#reviewVersion =
      (webhook?.conversionReviewVersions ?? []).find((one) => one === 'v1' || one === 'v1beta1') ?? 'v1';
    this.#name = definition.metadata?.name ?? '';
    this.#clock = options.clock;
    this.#addresses = options.addresses;
  }

  /** @throws StatusError 500 when the webhook cannot be called or its answer is wrong. */
  async convert(objects: readonly KubeObject[], to: KindDefinition): Promise<readonly KubeObject[]> {
    const [first] = objects;
    if (first === undefined) return [];
    const { group, version } = { group: to.group, version: first.apiVersion?.split('/')[1] ?? '' };
    const subject = `${group}/${version}, Kind=${to.kind}`;
    try {
      const converted = await this.#call(objects, to.apiVersion);
      if (converted.length !== objects.length)
        throw new WebhookProblem(`returned ${converted.length} objects, expected ${objects.length}`);
      return converted.map((object, i) => checked(object, objects[i] as KubeObject, to, i));
    } catch (error) {
      if (error instanceof WebhookProblem)
        throw statusErrors.internal(`conversion webhook for ${subject} ${error.message}`, error);
      throw statusErrors.internal(`conversion webhook for ${subject} failed: ${failureOf(error).reason}`, error);
    }
  }

  close(): void {
    this.#agent.destroy();
  }

  async #call(objects: readonly KubeObject[], desiredAPIVersion: string): Promise<readonly unknown[]> {
    const apiVersion = `apiextensions.k8s.io/${this.#reviewVersion}`;
    const uid = randomUUID();
    const body = { kind: 'ConversionReview', apiVersion, request: { uid, desiredAPIVersion, objects } };
    const { url, service, caBundle } = this.#config;
    const host = service && `${service.name}.${service.namespace}.svc`;
    const port = service?.port ?? 443;
    const called = `${url ?? `https://${host}:${port}${service?.path ?? '/'}`}?timeout=${timeoutMs / 1000}s`;
    const answer = await requestJson({
      url: called,
      body,
      headers: webhookHeaders,
      ...(service
        ? { connectTo: await resolvedFor(called, this.#addresses(service.namespace, service.name, port)) }
        : {}),
      tls: {
        ...(caBundle ? { ca: Buffer.from(caBundle, 'base64') } : {}),
        ...(host === undefined ? {} : { servername: host }),
      },
      agent: this.#agent,
      timeoutMs,
      answerBytes: leastAnswerBytes + growth * JSON.stringify(body).length,
      clock: this.#clock,
    });
    return convertedObjects(answer, apiVersion, uid);
  }

  get name(): string {
    return this.#name;
  }
}

/** An error in the response of a conversion webhook. */
class WebhookProblem extends Error {}

function convertedObjects(answer: unknown, apiVersion: string, uid: string): readonly unknown[] {
  const fail = (text: string) => new WebhookProblem(`failed: ${text}`);
  if (!isJsonObject(answer) || answer['kind'] !== 'ConversionReview' || answer['apiVersion'] !== apiVersion) {
    const { kind = '', apiVersion: got = '' } = isJsonObject(answer) ? answer : {};
    throw fail(
      `expected webhook response of ${apiVersion}, Kind=ConversionReview, got ${String(got)}, Kind=${String(kind)}`,
    );
  }
  const { response } = answer;
  if (!isJsonObject(response)) throw fail('no response provided');
  if (apiVersion.endsWith('/v1') && response['uid'] !== uid)
    throw fail(`expected response.uid=${JSON.stringify(uid)}, got ${JSON.stringify(response['uid'] ?? '')}`);
  const result: Json = isJsonObject(response['result']) ? response['result'] : {};
  if (result['status'] !== 'Success') {
    const { message } = result;
    throw fail(
      typeof message === 'string' && message !== ''
        ? message
        : `response.result.status was '${String(result['status'] ?? '')}', not 'Success'`,
    );
  }
  const { convertedObjects: objects } = response;
  return Array.isArray(objects) ? objects : [];
}

/** Checks a converted object and restores the original metadata. A webhook may change only labels and annotations. */
function checked(object: unknown, original: KubeObject, to: KindDefinition, index: number): KubeObject {
  const at = `returned invalid converted object at index ${index}`;
  if (!isJsonObject(object)) throw new WebhookProblem(`${at}: it is not an object`);
  const { apiVersion, kind, metadata, ...rest } = object;
  if (apiVersion !== to.apiVersion)
    throw new WebhookProblem(`${at}: invalid groupVersion (expected ${to.apiVersion}, received ${String(apiVersion)})`);
  if (kind !== original.kind)
    throw new WebhookProblem(`${at}: invalid kind (expected ${original.kind}, received ${String(kind)})`);
  if (!isJsonObject(metadata))
    throw new WebhookProblem(
      `returned invalid metadata in object at index ${index}: missing metadata in converted object`,
    );
  const before: Json = { ...original.metadata };
  for (const [field, word] of [
    ['name', 'name'],
    ['namespace', 'namespace'],
    ['uid', 'UID'],
  ] as const) {
    if (!equalJson(metadata[field] ?? '', before[field] ?? ''))
      throw new WebhookProblem(
        `${at}: must have the same ${word}: ${String(before[field])} != ${String(metadata[field])}`,
      );
  }
  const { labels: _labels, annotations: _annotations, ...kept } = before;
  return {
    kind: to.kind,
    apiVersion: to.apiVersion,
    metadata: { ...kept, ...textsOf(metadata, 'labels', index), ...textsOf(metadata, 'annotations', index) },
    ...rest,
  } as KubeObject;
}

function textsOf(metadata: Json, field: 'labels' | 'annotations', index: number): object {
  const value = metadata[field];
  if (value === undefined || value === null) return {};
  if (isJsonObject(value) && Object.values(value).every((text) => typeof text === 'string')) return { [field]: value };
  const text = `returned invalid metadata in object at index ${index}: metadata.${field} must contain strings only`;
  throw new WebhookProblem(text);
}
