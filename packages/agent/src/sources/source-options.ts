import type { Clock, Logger } from '@keelson/core/runtime';
import type { Pod } from '@keelson/kinds';
import type { PodSink } from '../base/contracts/pod-source.ts';
import { type EventRecorder, podSubject } from '../base/events/event-recorder.ts';

/** Dependencies of every source of static pods. */
export interface SourceOptions {
  readonly sink: PodSink;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly events: EventRecorder;
}

/** Reports that a pod is skipped because another pod of its source has the same name. */
export function reportDuplicate({ events, logger }: SourceOptions, source: string): (pod: Pod) => void {
  return (pod) => {
    const { namespace = '', name = '' } = pod.metadata ?? {};
    logger.warn('a pod was skipped: its source has another pod of the same name', {
      source,
      pod: `${namespace}/${name}`,
    });
    events.record(
      podSubject(pod),
      'Warning',
      'FailedValidation',
      `Another pod of the source ${source} has the name ${namespace}/${name}`,
    );
  };
}
