import {
  type ConnectCall,
  type ConnectOptions,
  type ConnectSubresource,
  type FieldError,
  fieldError,
} from '@keelson/core';
import { pathOf, queryText } from '../../../connect/query.ts';
import type { Pod } from '../schema/index.ts';
import { containerChoice } from './container-choice.ts';

function validate(options: ConnectOptions): FieldError[] {
  const errors: FieldError[] = [];
  const atLeast = (field: string, least: number, detail: string) => {
    const value = options[field];
    if (typeof value === 'number' && value < least) errors.push(fieldError.invalid(field, value, detail));
  };
  atLeast('tailLines', 0, 'must be greater than or equal to 0');
  atLeast('limitBytes', 1, 'must be greater than 0');
  if (options['sinceSeconds'] !== undefined && options['sinceTime'] !== undefined) {
    errors.push(fieldError.forbidden('sinceTime', 'at most one of `sinceTime` or `sinceSeconds` may be specified'));
  } else atLeast('sinceSeconds', 1, 'must be greater than 0');
  return errors;
}

/** What a container wrote, as text. A pod that has no node yet has written nothing. */
export const logSubresource: ConnectSubresource = {
  type: 'connect',
  name: 'log',
  verbs: ['get'],
  optionsKind: { group: '', version: 'v1', kind: 'PodLogOptions' },
  shownKind: { group: '', version: 'v1', kind: 'Pod' },
  parameters: [
    { name: 'container', type: 'string', description: 'The container; needed when the pod has several.' },
    { name: 'follow', type: 'boolean', description: 'Goes on with what is written from now on.' },
    {
      name: 'insecureSkipTLSVerifyBackend',
      type: 'boolean',
      description: 'The log is wanted even from an agent that cannot prove who it is.',
    },
    { name: 'limitBytes', type: 'integer', description: 'Ends after this many bytes.' },
    { name: 'previous', type: 'boolean', description: 'The run of the container before this one.' },
    { name: 'sinceSeconds', type: 'integer', description: 'Only what was written in the last so many seconds.' },
    { name: 'sinceTime', type: 'time', description: 'Only what was written since then, in RFC 3339.' },
    { name: 'tailLines', type: 'integer', description: 'Only the last lines.' },
    { name: 'timestamps', type: 'boolean', description: 'Puts the time before each line.' },
  ],
  upgrades: false,
  validate,
  locate({ parent: pod, options }: ConnectCall<Pod>) {
    const container = containerChoice(pod, options['container']);
    const { nodeName } = pod.spec;
    if (!nodeName) return { to: 'nothing' };
    const { follow, previous, timestamps, sinceSeconds, sinceTime, tailLines, limitBytes } = options;
    return {
      to: 'agent',
      node: nodeName,
      path: pathOf('containerLogs', pod.metadata?.namespace ?? '', pod.metadata?.name ?? '', container),
      query: queryText({ follow, previous, timestamps, sinceSeconds, sinceTime, tailLines, limitBytes }),
      anyCertificate: options['insecureSkipTLSVerifyBackend'] === true,
    };
  },
};
