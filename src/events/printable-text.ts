import { z } from 'zod'

/** Control characters, lone surrogates and noncharacters. Source: the type String of the CloudEvents specification. */
export const forbidden = /[\p{Cc}\p{Cs}\p{Noncharacter_Code_Point}]/u

/** A text that can become an attribute of a CloudEvent. */
export const printableText = z
  .string()
  .min(1, { abort: true })
  .refine((text) => /\S/.test(text) && !forbidden.test(text), 'expected a text with at least one printable and no control character')
