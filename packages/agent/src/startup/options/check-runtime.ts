import type { GivenValues } from '@keelson/core/internal';
import { between, type Check, noNegativePeriod, oneOf, positivePeriod } from './option-checks.ts';
import type { OptionName } from './option-table.ts';

function* gcOrder({ values }: Parameters<Check>[0]): Iterable<string> {
  const { 'image-gc-low-threshold': low, 'image-gc-high-threshold': high } = values;
  if (low > high) yield `--image-gc-low-threshold (${low}) must not be above --image-gc-high-threshold (${high})`;
}

function unixSocket(
  name: 'container-runtime-endpoint' | 'image-service-endpoint' | 'runtime-a-endpoint',
  optional: boolean,
): Check {
  return function* ({ values }) {
    const value = values[name];
    if (optional && value === '') return;
    if (!/^unix:\/\/\/./.test(value))
      yield `--${name} must be a unix socket such as unix:///run/x.sock, not ${JSON.stringify(value)}`;
  };
}

/** The supervisor accepts every operation from a client with its key, so only loopback addresses are allowed. */
function* supervisor({ values }: Parameters<Check>[0]): Iterable<string> {
  const value = values['runtime-b-api-endpoint'];
  const [, host = '', digits] = /^(\[[0-9a-fA-F:]+\]|[^:\s]+):(\d{1,5})$/.exec(value) ?? [];
  const port = Number(digits);
  if (!(port >= 1 && port <= 65_535)) yield `--runtime-b-api-endpoint must be HOST:PORT, not ${JSON.stringify(value)}`;
  else if (values['container-runtime'] === 'runtime-b' && !/^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(host))
    yield `--runtime-b-api-endpoint must be a loopback address such as localhost:15441, not ${JSON.stringify(value)}`;
}

function* image({ values }: Parameters<Check>[0]): Iterable<string> {
  if (!/^\S+$/.test(values['pod-infra-container-image'])) yield '--pod-infra-container-image must name an image';
}

function* imageEndpoint({ values, given }: Parameters<Check>[0]): Iterable<string> {
  if (values['image-service-endpoint'] !== '' && !given.has('container-runtime-endpoint')) {
    yield '--image-service-endpoint needs --container-runtime-endpoint';
  }
}

/** Options that only one kind of runtime uses. */
const onlyWith: readonly (readonly [option: OptionName, runtime: 'runtime-a' | 'runtime-b'])[] = [
  ['runtime-a-endpoint', 'runtime-a'],
  ['runtime-b-path', 'runtime-b'],
  ['runtime-b-api-endpoint', 'runtime-b'],
];

/**
 * Warnings about options that the chosen runtime does not use: see docs/reference/agent-rules.md#choice-of-the-runtime.
 */
export function runtimeWarnings(runtime: string, given: GivenValues): string[] {
  const unused = onlyWith.filter(([name, owner]) => owner !== runtime && given.has(name)).map(([name]) => name);
  if (runtime === 'runtime-b') {
    for (const name of ['container-runtime-endpoint', 'image-service-endpoint'] as const)
      if (given.has(name)) unused.push(name);
  }
  return unused.map((name) => `--${name} has no effect with --container-runtime=${runtime}`);
}

/** Checks of the container runtime and of images. */
export const runtimeChecks: readonly Check[] = [
  oneOf('container-runtime', 'runtime-a', 'runtime-b'),
  unixSocket('container-runtime-endpoint', false),
  unixSocket('image-service-endpoint', true),
  unixSocket('runtime-a-endpoint', false),
  imageEndpoint,
  supervisor,
  image,
  between(0, 100, 'image-gc-high-threshold', 'image-gc-low-threshold'),
  gcOrder,
  between(0, Number.POSITIVE_INFINITY, 'registry-qps', 'registry-burst'),
  positivePeriod('runtime-request-timeout', 'image-pull-progress-deadline'),
  noNegativePeriod('minimum-image-ttl-duration', 'volume-stats-agg-period'),
];
