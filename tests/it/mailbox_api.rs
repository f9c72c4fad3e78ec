//! `/api`

mod accounts {
    mod again;
    mod post;
}
mod domains {
    mod get;
}
mod jwt;
mod me {
    mod delete;
    mod get;
}
mod message;
mod messages {
    mod get;
}
mod rates;
mod token {
    mod outage;
    mod post;
}
mod ws;
