//! How much of a document and of a server is believed, and for how long.

use std::time::Duration;

/// What one document, and one call to its server, may take. Everything that they say is from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the document. Default 67,108,864.
    pub document_bytes: usize,
    /// Values in the document, names not counted and examples left out. Default 4,000,000.
    pub document_values: usize,
    /// How long fetching the document may take. Default 30 s.
    pub fetch: Duration,
    /// Operations that the filter leaves; what follows is left out, and the first problem says so. Default 5,000.
    pub operations: usize,
    /// Parameters of an operation with the fields of its body; an operation with more is left out. Default 200.
    pub parameters: usize,
    /// References that lead to one another before the thing itself. Default 32.
    pub references: usize,
    /// Levels of objects that the schema of a parameter or a result keeps; what is below reads as anything. Default 5.
    pub schema_depth: usize,
    /// Schemas within the schema of a parameter or a result; fewer levels are kept where there would be more. Default 150.
    pub schema_nodes: usize,
    /// Schemas within all parameters and results; what comes after that many reads as anything. Default 400,000.
    pub schemas: usize,
    /// Characters of an operation's signature; where it would have more, optional parameters say less of their types, the
    /// last ones first. Default 4,000.
    pub signature_characters: usize,
    /// Problems that are listed. Default 200.
    pub problems: usize,
    /// How long connecting to the server may take. Default 10 s.
    pub connect: Duration,
    /// How long a call may take. Default 60 s.
    pub call: Duration,
    /// Bytes of a request's body. Default 16,777,216.
    pub request_bytes: usize,
    /// Bytes of an answer's body; a longer one fails its call. Default 4,194,304.
    pub response_bytes: usize,
    /// Pages that one call gets as one; it also stops at as many bytes as an answer may have. Default 100.
    pub pages: usize,
    /// Redirects within the server that a call follows. Default 5.
    pub redirects: usize,
    /// Characters of an operation's or a parameter's description; the rest is cut. Default 160.
    pub description_characters: usize,
    /// Characters of an error's message; the rest is cut. Default 1,000.
    pub message_characters: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            document_bytes: 64 * 1024 * 1024,
            document_values: 4_000_000,
            fetch: Duration::from_secs(30),
            operations: 5_000,
            parameters: 200,
            references: 32,
            schema_depth: 5,
            schema_nodes: 150,
            schemas: 400_000,
            signature_characters: 4_000,
            problems: 200,
            connect: Duration::from_secs(10),
            call: Duration::from_secs(60),
            request_bytes: 16 * 1024 * 1024,
            response_bytes: 4 * 1024 * 1024,
            pages: 100,
            redirects: 5,
            description_characters: 160,
            message_characters: 1_000,
        }
    }
}
