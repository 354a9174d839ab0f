/** The words of media types and of the metadata API, which a team may make its own. */
export interface Brand {
  /** Segment of `application/vnd.{vendor}.protobuf`. */
  readonly vendor: string;
  /** Group of Table and PartialObjectMetadata. */
  readonly metaGroup: string;
}

/** The words that existing clients know. */
export const defaultBrand: Brand = { vendor: 'kubernetes', metaGroup: 'meta.k8s.io' };
